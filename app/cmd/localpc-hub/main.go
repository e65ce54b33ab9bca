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
	"slices"
	"syscall"

	"localpc/tunnel/hub/store"
)

// Exit codes.
const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
)

const usage = `Local PC Executor's hub: programs reach computers through it.

  localpc-hub serve            run the hub
      --listen ADDR            where it listens (127.0.0.1:4417)
      --public-url URL         the address that programs and computers use
  localpc-hub key add NAME     make a key for a program and print it, once
  localpc-hub key list
  localpc-hub key revoke ID
  localpc-hub machine add NAME make a pairing line for a computer and print it, once
  localpc-hub machine list
  localpc-hub machine revoke ID

Every command takes --data DIR; the lists take --json.
`

// errUsage is a wrong use of the program; its text says what.
type errUsage string

func (e errUsage) Error() string { return string(e) }

// cli is what every command works with.
type cli struct {
	out, errs            io.Writer
	data, listen, public string
	json                 bool
	args                 []string // what is not a flag
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
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
		fmt.Fprintf(errs, "localpc-hub: %v\n\n%s", err, usage)
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
	f.BoolVar(&c.json, "json", false, "")
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
	return nil
}

// command runs what the words name.
func (c *cli) command(ctx context.Context) error {
	if len(c.args) == 0 {
		return errUsage("no command is given")
	}
	if c.args[0] == "serve" {
		if len(c.args) > 1 {
			return errUsage(fmt.Sprintf("serve takes no %q", c.args[1]))
		}
		return c.serve(ctx)
	}
	commands := map[string]func(context.Context, *store.Store, string) error{
		"key add": c.keyAdd, "key list": c.keyList, "key revoke": c.keyRevoke,
		"machine add": c.machineAdd, "machine list": c.machineList, "machine revoke": c.machineRevoke,
	}
	name := c.args[0]
	if len(c.args) > 1 {
		name += " " + c.args[1]
	}
	do := commands[name]
	words := 3
	if slices.Contains([]string{"key list", "machine list"}, name) {
		words = 2
	}
	switch {
	case do == nil:
		return errUsage(fmt.Sprintf("there is no command %q", name))
	case len(c.args) != words:
		return errUsage(fmt.Sprintf("%s takes %d more words, not %d", name, words-2, len(c.args)-2))
	}
	return c.withStore(ctx, name, do)
}
