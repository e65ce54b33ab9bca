// Localpc-hub is the platform end: it accepts computers and serves the
// programs that use them. Its other commands work on a hub's data, running or
// not, the one inside localpc too (--data DIR, the folder "hub" in localpc's).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// Exit codes.
const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
)

// errUsage is a wrong use of the program; its text says what.
type errUsage string

func (e errUsage) Error() string { return string(e) }

// cli is what every command works with.
type cli struct {
	out, errs                  io.Writer
	data, listen, public, user string
	serving                    serving
	claudes                    claudeFlags
	json                       bool
	args                       []string // what is not a flag
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first signal the next one does what it does to any program.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	c := &cli{out: out, errs: errs}
	err := c.parse(args)
	if err == nil {
		err = c.command(ctx)
	}
	var wrong errUsage
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return exitOK
	case errors.As(err, &wrong):
		fmt.Fprintf(errs, "localpc-hub: %v\nlocalpc-hub help says how it is used.\n", err)
		return exitUsage
	default:
		fmt.Fprintf(errs, "localpc-hub: %v\n", err)
		return exitFail
	}
}

// parse takes flags before, between and after the words; -- ends them.
func (c *cli) parse(args []string) error {
	f := flag.NewFlagSet("localpc-hub", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&c.data, "data", "", "")
	f.StringVar(&c.listen, "listen", "127.0.0.1:4417", "")
	f.StringVar(&c.public, "public-url", "", "")
	f.StringVar(&c.user, "user", "", "")
	f.BoolVar(&c.json, "json", false, "")
	c.serving.flags(f)
	c.claudes.flags(f)
	for {
		before := len(args)
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			return err
		} else if err != nil {
			return errUsage(err.Error())
		}
		rest := f.Args()
		if n := before - len(rest); n > 0 && args[n-1] == "--" || len(rest) == 0 {
			c.args = append(c.args, rest...)
			break
		}
		c.args, args = append(c.args, rest[0]), rest[1:]
	}
	if c.data == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return errUsage("there is no home directory to keep data in; name one with --data DIR")
		}
		c.data = filepath.Join(dir, "localpc-hub")
	}
	// What is printed about it has to be right from everywhere.
	data, err := filepath.Abs(c.data)
	if err != nil {
		return fmt.Errorf("%s: %w", c.data, err)
	}
	c.data = data
	return nil
}

// command runs what the words name.
func (c *cli) command(ctx context.Context) error {
	if len(c.args) == 0 {
		return errUsage("no command is given")
	}
	if c.args[0] == "help" {
		return flag.ErrHelp
	}
	type command struct {
		words int
		run   func(context.Context) error
	}
	commands := map[string]command{
		"serve": {1, c.serve}, "backup": {2, c.backup}, "restore": {2, c.restore}, "health": {1, c.health}, "claude": {2, c.claude},
		"user add": {3, c.with(c.userAdd)}, "user list": {2, c.with(c.userList)}, "user reset": {3, c.with(c.userReset)}, "user remove": {3, c.with(c.userRemove)},
		"key add": {3, c.with(c.keyAdd)}, "key list": {2, c.with(c.keyList)}, "key revoke": {3, c.with(c.keyRevoke)},
		"machine add": {3, c.with(c.machineAdd)}, "machine list": {2, c.with(c.machineList)}, "machine revoke": {3, c.with(c.machineRevoke)},
	}
	name := c.args[0]
	if _, one := commands[name]; !one && len(c.args) > 1 {
		name += " " + c.args[1]
	}
	do, known := commands[name]
	of := strings.Count(name, " ") + 1
	switch {
	case !known:
		return errUsage(fmt.Sprintf("there is no command %q", name))
	case len(c.args) != do.words && do.words == of:
		return errUsage(fmt.Sprintf("%s takes no more words, not %q", name, c.args[of:]))
	case len(c.args) != do.words:
		return errUsage(fmt.Sprintf("%s takes one more word, and there are %d", name, len(c.args)-of))
	}
	return do.run(ctx)
}
