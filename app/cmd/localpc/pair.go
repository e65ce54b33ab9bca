package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"localpc/app/control"
	"localpc/app/settings"
	"localpc/app/snapshot"
)

// pairFlags are those of pair.
type pairFlags struct {
	code    bool
	autoGPT snapshot.AutoGPT
}

func pairFlagSet(c *cli, f *flag.FlagSet) {
	f.BoolVar(&c.pair.code, "code", false, "sign in with a code, on any device")
	f.StringVar(&c.pair.autoGPT.Web, "web", "", "AutoGPT: base of the pages")
	f.StringVar(&c.pair.autoGPT.API, "api", "", "AutoGPT: base of the OAuth calls")
	f.StringVar(&c.pair.autoGPT.WS, "ws", "", "AutoGPT: base of the sockets")
	f.StringVar(&c.pair.autoGPT.ClientID, "client-id", "", "AutoGPT: the client id")
	f.StringVar(&c.pair.autoGPT.Scope, "scope", "", "AutoGPT: the scope")
	f.StringVar(&c.pair.autoGPT.Ports, "ports", "", "AutoGPT: the redirect ports")
}

// intent is what the words and flags ask for.
func (p pairFlags) intent(args []string) (snapshot.Intent, error) {
	if len(args) != 1 {
		return snapshot.Intent{}, usageError("pair takes one word: this, autogpt, the address of a hub, or the line that one printed")
	}
	in := snapshot.Intent{Kind: snapshot.Pair, Text: args[0]}
	switch {
	case in.Text == settings.HubAutoGPT && p.code:
		return in, usageError("AutoGPT takes no codes: pair in a browser, on this computer")
	case in.Text != settings.HubAutoGPT && p.autoGPT != (snapshot.AutoGPT{}):
		return in, usageError("--web, --api, --ws, --client-id, --scope and --ports are for pair autogpt")
	case in.Text == settings.HubAutoGPT && p.autoGPT != (snapshot.AutoGPT{}):
		in.AutoGPT = &p.autoGPT
	case in.Text == settings.HubAutoGPT || in.Text == settings.HubThis:
	case p.code || !hasDisplay():
		in.Way = "code"
	}
	return in, nil
}

// pair pairs, and says meanwhile what the person has to do, and where. An
// interrupt cancels the sign-in.
func pair(c *cli, args []string) error {
	in, err := c.pair.intent(args)
	if err != nil {
		return err
	}
	cl, err := control.Dial(c.paths.Socket())
	if err != nil {
		return err
	}
	defer cl.Close()
	watch, err := control.Dial(c.paths.Socket())
	if err != nil {
		return err
	}
	defer watch.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	type result struct {
		reply snapshot.Reply
		err   error
	}
	done := make(chan result, 1)
	go func() { r, err := cl.Intend(in); done <- result{r, err} }() // ends with cl
	interrupted := ctx.Done()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	said := ""
	for {
		select {
		case r := <-done:
			if r.err != nil {
				return r.err
			}
			fmt.Fprintln(c.out, r.reply.Text)
			if in.Text == settings.HubThis {
				fmt.Fprintf(c.out, "Make a key for a program with: %s-hub key add NAME --data '%s'\n", os.Args[0], c.paths.Hub())
			}
			return nil
		case <-interrupted:
			interrupted = nil
			if _, err := watch.Intend(snapshot.Intent{Kind: snapshot.CancelPair}); err != nil {
				return errors.Join(errors.New("the sign-in could not be cancelled"), err)
			}
		case <-tick.C:
			resp, err := watch.Do(control.Request{Op: control.OpStatus})
			if err != nil {
				continue // the answer to the pairing says why
			}
			if words := signInWords(resp.Snapshot.Connect.SignIn); words != "" && words != said {
				fmt.Fprint(c.out, words)
				said = words
			}
		}
	}
}

// signInWords say what the person has to do now; "" for nothing new.
func signInWords(s *snapshot.SigningIn) string {
	if s == nil || s.Stage == snapshot.SignInStarting {
		return ""
	}
	var b strings.Builder
	control.WriteSignIn(&b, *s, time.Time{})
	if s.Stage != snapshot.SignInFinishing {
		fmt.Fprintf(&b, "Waiting until %s; Ctrl+C cancels.\n", s.Until.Local().Format("15:04"))
	}
	return b.String()
}
