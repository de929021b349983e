"""`python -m odfpy`: the same as the command `odf`."""

from odfpy.cli.app import main

main()
