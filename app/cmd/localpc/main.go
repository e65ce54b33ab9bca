// Localpc is the executor: the tunnel, the gate, the record, the executors and
// the tray icon. It puts the seven steps' parts together and runs them; its
// other commands ask the running program over the control socket.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"localpc/app/settings"
)

// version is what HELLO, the record and "localpc version" say.
const version = "0.1.0"

// Exit codes.
const exitOK, exitFail, exitUsage = 0, 1, 2

// command is one subcommand: it gets its own flags' rest.
type command struct {
	run   func(c *cli, args []string) error
	flags func(c *cli, f *flag.FlagSet)
}

// cli is what every command works with.
type cli struct {
	paths   settings.Paths
	json    bool
	anyway  bool // undo
	out     io.Writer
	run     runFlags
	pair    pairFlags
	remove  removeFlags
	mcp     mcpFlags
	connect connectFlags
	// passphraseFile has the passphrase of the encrypted file; "" for none.
	passphraseFile string
}

// usageError is a wrong use: exit 2.
type usageError string

func (e usageError) Error() string { return string(e) }

func commands() map[string]command {
	return map[string]command{
		"run":       {run: run, flags: runFlagSet},
		"pair":      {run: pair, flags: pairFlagSet},
		"unpair":    {run: unpair},
		"connect":   {run: connect, flags: connectFlagSet},
		"status":    {run: status, flags: jsonFlag},
		"doctor":    {run: doctor, flags: jsonFlag},
		"grants":    {run: grants, flags: readFlags},
		"record":    {run: recordCommand, flags: readFlags},
		"secrets":   {run: secrets, flags: passphraseFlag},
		"stop-work": {run: stopWork},
		"resume":    {run: resume},
		"undo":      {run: undo, flags: undoFlagSet},
		"mcp":       {run: mcpCommand, flags: mcpFlagSet},
		"quit":      {run: quit},
		"autostart": {run: autostartCommand},
		"remove":    {run: removeCommand, flags: removeFlagSet},
		"version":   {run: func(c *cli, _ []string) error { _, err := fmt.Fprintln(c.out, "localpc", version); return err }},
	}
}

func jsonFlag(c *cli, f *flag.FlagSet) {
	f.BoolVar(&c.json, "json", false, "print JSON")
}

func main() { os.Exit(realMain(os.Args[1:])) }

func realMain(args []string) int {
	name := "run"
	if len(args) > 0 && (args[0] == "" || args[0][0] != '-') {
		name, args = args[0], args[1:]
	}
	if name == "help" || len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
		fmt.Print(usage)
		return exitOK
	}
	cmd, ok := commands()[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "localpc: there is no command %q; localpc help lists them\n", name)
		return exitUsage
	}
	c := &cli{out: os.Stdout}
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(os.Stderr)
	fs.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	fs.StringVar(&c.paths.Data, "data", "", "where everything is kept")
	if cmd.flags != nil {
		cmd.flags(c, fs)
	}
	rest, err := parse(fs, args)
	if err == nil && c.paths.Data == "" {
		c.paths.Data, err = settings.DefaultData()
	}
	if err == nil {
		err = cmd.run(c, rest)
	} else {
		err = usageError(err.Error())
	}
	var ue usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ue):
		fmt.Fprintf(os.Stderr, "localpc: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(os.Stderr, "localpc: %v\n", err)
		return exitFail
	}
}

// parse takes flags before, between and after the words of a command.
func parse(fs *flag.FlagSet, args []string) ([]string, error) {
	var words []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if fs.NArg() == 0 {
			return words, nil
		}
		words, args = append(words, fs.Arg(0)), fs.Args()[1:]
	}
}
