package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"localpc/app/control"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/consent/policy"
)

type runFlags struct {
	embeddedHub, hub, folder, policy string
	file                             *policy.File // of --policy FILE
	// background: the system starts it, nobody waits for a window.
	background bool
}

func runFlagSet(c *cli, f *flag.FlagSet) {
	f.StringVar(&c.run.embeddedHub, "embedded-hub", "", "where the hub inside listens")
	f.StringVar(&c.run.hub, "hub", "", "the hub to connect to")
	f.StringVar(&c.run.folder, "folder", "", "the folder that is offered first")
	f.StringVar(&c.run.policy, "policy", "ask", "ask, contained, full, or a policy file")
	f.BoolVar(&c.run.background, "background", false, "open no window")
	passphraseFlag(c, f)
}

// check holds the flags against each other.
func (r *runFlags) check() error {
	switch r.policy {
	case "ask":
	case "contained", "full":
		if r.folder == "" {
			return usageError("--policy " + r.policy + " needs --folder DIR: the one folder it is for")
		}
	default:
		if r.folder != "" {
			return usageError("--folder and a policy file exclude each other: the file names the folder")
		}
		f, err := readPolicy(r.policy)
		if err != nil {
			return err
		}
		r.file, r.folder = f, f.Folder
	}
	if r.hub != "" && r.embeddedHub != "" {
		return usageError("--hub and --embedded-hub exclude each other")
	}
	if r.hub != "" {
		hub, err := settings.HubAddress(r.hub) // as pairing keeps it
		if err != nil {
			return usageError("--hub is no hub's address: " + err.Error())
		}
		r.hub = hub
	}
	if r.embeddedHub != "" {
		if err := settings.CheckLoopback(r.embeddedHub); err != nil {
			return usageError(err.Error())
		}
	}
	if r.folder != "" {
		abs, err := filepath.Abs(r.folder)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if err != nil {
			return fmt.Errorf("--folder: %w", err)
		}
		r.folder = abs
	}
	return nil
}

func (r *runFlags) apply(set *settings.Store) error {
	s := set.Get()
	if r.hub != "" && s.Hub != "" && s.Hub != r.hub {
		return fmt.Errorf("this computer is paired with %s; run localpc unpair first", s.Hub)
	}
	if r.hub == "" && r.embeddedHub == "" {
		return nil
	}
	return set.Change(func(s *settings.Settings) {
		if r.hub != "" {
			s.Hub = r.hub
		}
		if r.embeddedHub != "" {
			s.EmbeddedHub = r.embeddedHub
		}
	})
}

func run(c *cli, args []string) error {
	if len(args) > 0 {
		return usageError(fmt.Sprintf("run takes no %q", args[0]))
	}
	if err := c.run.check(); err != nil {
		return err
	}
	if err := c.makeData(); err != nil {
		return err
	}
	release, err := control.Lock(c.paths.Lock())
	if errors.Is(err, control.ErrRunning) {
		return raise(c)
	}
	if err != nil {
		return err
	}
	removal, err := serve(c)
	if removal == nil {
		release()
		return err
	}
	notes, failed := c.takeAway(context.Background(), removal.keep)
	release() // somebody may start it anew while the last word is read
	c.farewell(removal, notes, failed)
	return errors.Join(err, failed)
}

// serve runs everything until the program is to end. removal says that it is to
// be taken off this computer then; nil otherwise.
func serve(c *cli) (removal *removal, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	p, err := build(ctx, c, cancel)
	if err != nil {
		return nil, err
	}
	defer leave(p.log, leaveWithin, os.Exit, p.close)
	fmt.Fprintln(c.out, p.greeting(c))
	ended := make(chan error, 1)
	go func() { ended <- p.machine.Run(ctx); cancel() }()
	p.begin(c)
	// The main goroutine belongs to the tray where the system wants that.
	if p.desktop != nil {
		p.tray.Run(ctx)
	}
	<-ctx.Done()
	err = <-ended
	return p.removal.Load(), err
}

// leaveWithin is how long the parts may take to be put away, after the machine
// has ended, which bounds itself.
const leaveWithin = 20 * time.Second

// leave puts everything away. A part that hangs must not keep the program, and
// with it the lock on its data, for ever.
func leave(log *slog.Logger, within time.Duration, exit func(int), close func()) {
	late := time.AfterFunc(within, func() {
		log.Error("The program did not end in time, so it was ended as it was")
		exit(1)
	})
	defer late.Stop()
	close()
}

// raise shows what the program that runs already has to show: the card that
// waits, or the window that was seen last.
func raise(c *cli) error {
	if c.run.background {
		return nil
	}
	cl, err := control.Dial(c.paths.Socket())
	if err != nil {
		return err
	}
	defer cl.Close()
	reply, err := cl.Intend(snapshot.Intent{Kind: snapshot.ShowWindow})
	if err != nil {
		return fmt.Errorf("it runs already, and its window can't be raised: %w", err)
	}
	if reply.Text == "" {
		reply.Text = "Its window was raised."
	}
	fmt.Fprintln(c.out, "Local PC Executor runs already.", reply.Text)
	return nil
}

// policyOf is the decider that the flags choose.
func (r *runFlags) policyOf() policy.Policy {
	if r.file != nil {
		return policy.Policy{File: r.file, Folder: r.folder}
	}
	return policy.Policy{Preset: policy.Preset(r.policy), Folder: r.folder}
}
