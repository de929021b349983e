"""The reference web: five relays over TPC-H in processes of their own, and a sixth that never responds.

  na_us - na - global - emea      apac - emea, too, for lineitem only
                  |  \
            offline    apac

`words` maps each relay's column names and units, `documents` writes the declarations, `data` generates the rows,
`layout` defines the folder, and `running` starts and stops the processes.
"""
