package main

const usage = `Local PC Executor lends this computer to an AI agent, on your terms.

  localpc [run]              start, or show the card or window of the one that runs
      --data DIR             where settings, grants and the record are kept
      --embedded-hub ADDR    where the hub inside listens (127.0.0.1:4417)
      --hub URL              connect to this hub
      --folder DIR           the folder that is offered first
      --passphrase-file FILE keep secrets in an encrypted file instead of the
                             keychain; FILE has its passphrase
      --policy ask|contained|full|FILE
                             contained: files and contained commands in --folder
                             without asking; full: everything, without asking;
                             FILE says what is allowed and denied (see README)
      --background           open no window, and do nothing where one runs
  localpc pair this          pair with the hub inside
  localpc pair ADDRESS|LINE  sign in at a hub of your own; LINE is what one printed
      --code                 with a code that is typed on any device
  localpc pair autogpt       sign in at AutoGPT; where it is not the public one:
      --web URL --api URL --ws URL --client-id ID --scope NAMES --ports A-B
  localpc unpair
  localpc connect            which programs on this computer can use it
  localpc connect PROGRAM    write that into the program's settings
      --print                print what would be written, and write nothing
      --off                  take it out again
  localpc connect --any NAME what any other MCP client takes
      --off                  take its key away
  localpc status             what goes on; answers a question that waits
  localpc doctor             what works here, and what to do about the rest
  localpc grants [revoke ID|all]
  localpc record verify|export FILE|tail
  localpc secrets [keychain|file]
                             where tokens and keys are kept, or move them there
      --passphrase-file FILE instead of typing it
  localpc autostart [on|off|status]
                             start this program when you log in
  localpc mcp                let a program use this computer that speaks MCP over
                             standard input and output (Claude Desktop)
      --program NAME         its name, as cards show it
      --hub URL              a hub elsewhere, with its key in LOCALPC_KEY
  localpc stop-work          stop everything and pause
  localpc resume
  localpc undo               list what can be undone
  localpc undo [session] ENTRY
                             put back what a request changed, or its session
      --anyway               also where somebody has worked since; that is kept
  localpc quit
  localpc remove [--keep|--erase] [--yes]
                             take this program off this computer, and keep or
                             erase the record of what was done here
  localpc version

Every command takes --data DIR; status, connect, doctor, grants, undo and record take --json;
grants and record take --passphrase-file FILE too.
`
