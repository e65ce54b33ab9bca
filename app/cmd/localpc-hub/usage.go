package main

const usage = `Local PC Executor's hub: programs reach computers through it.

  localpc-hub serve             run the hub
      --listen ADDR             where it listens (127.0.0.1:4417)
      --public-url URL          the address that people, programs and computers use
      --tls-cert FILE --tls-key FILE
                                serve TLS; changed files are used at once
      --behind-proxy            a proxy with TLS stands before it
      --trusted-proxy NET       a proxy whose X-Forwarded-For is believed, such as
                                10.0.0.0/8; may be repeated (this computer's own)
      --log-format text|json
      --metrics-listen ADDR     serve Prometheus metrics at /metrics there
      --metrics-token FILE      ask for the bearer token in FILE
  localpc-hub user add NAME     let a person in: prints a link for them, once
  localpc-hub user list
  localpc-hub user reset ID     print a link with which they log in anew
  localpc-hub user remove ID
  localpc-hub key add NAME      make a key for a program and print it, once
  localpc-hub key list
  localpc-hub key revoke ID
  localpc-hub machine add NAME  make a pairing line for a computer and print it, once
  localpc-hub machine list
  localpc-hub machine revoke ID
      --user NAME               whose the key or computer is (the owner's)
  localpc-hub backup FILE       copy all data into one file, while the hub runs
  localpc-hub restore FILE      put a backup in the place of the data
  localpc-hub health            ask the hub that runs here whether it is well
  localpc-hub claude TASK       have Claude do a task on a computer's screen, by
                                ANTHROPIC_API_KEY and a key of the hub in LOCALPC_KEY
      --hub URL                 the hub (http://127.0.0.1:4417)
      --machine NAME --monitor N
                                where: a computer's name, the index of its screen
      --model NAME --turns N    which model, and how many answers of it at most (50)
      --tool NAME               computer_toolset_20260801, or computer_20251124
                                for older models
      --api URL                 the API's base address, or ANTHROPIC_BASE_URL

Every command takes --data DIR; the lists take --json.
`
