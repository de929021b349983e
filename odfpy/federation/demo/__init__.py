"""The reference web: five relays over TPC-H in processes of their own, and a sixth one that never answers.

  na_us - na - global - emea      apac - emea, too, for lineitem only
                  |  \
            offline    apac

`words` has what each calls the same things, `documents` writes it down, `data` makes the rows, `layout` the folder, and
`running` starts and ends the processes.
"""
