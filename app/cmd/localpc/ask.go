package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"localpc/app/control"
	"localpc/app/snapshot"
	"localpc/consent"
)

// ask sends one intent to the running program and prints what it says.
func ask(c *cli, in snapshot.Intent) error {
	cl, err := control.Dial(c.paths.Socket())
	if err != nil {
		return err
	}
	defer cl.Close()
	reply, err := cl.Intend(in)
	if err != nil {
		return err
	}
	if reply.Text != "" {
		fmt.Fprintln(c.out, reply.Text)
	}
	return nil
}

func unpair(c *cli, args []string) error   { return plain(c, args, snapshot.Unpair) }
func stopWork(c *cli, args []string) error { return plain(c, args, snapshot.StopAll) }
func resume(c *cli, args []string) error   { return plain(c, args, snapshot.Resume) }
func quit(c *cli, args []string) error     { return plain(c, args, snapshot.Quit) }

func plain(c *cli, args []string, kind snapshot.IntentKind) error {
	if len(args) != 0 {
		return usageError(fmt.Sprintf("this command takes no %q", args[0]))
	}
	return ask(c, snapshot.Intent{Kind: kind})
}

// status prints what goes on, and asks the question that waits when both ends
// are a terminal.
func status(c *cli, args []string) error {
	if len(args) != 0 {
		return usageError(fmt.Sprintf("status takes no %q", args[0]))
	}
	cl, err := control.Dial(c.paths.Socket())
	if err != nil {
		return err
	}
	defer cl.Close()
	resp, err := cl.Do(control.Request{Op: control.OpStatus})
	if err != nil {
		return err
	}
	s := resp.Snapshot
	if c.json {
		s.Entries, s.Connect.Lines = nil, nil // no key in what scripts keep
		enc := json.NewEncoder(c.out)
		enc.SetIndent("", "  ")
		return enc.Encode(s)
	}
	control.WriteStatus(c.out, *s, time.Now())
	if s.Waiting == 0 {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Fprintf(c.out, "%d waiting: run localpc status in a terminal to answer\n", s.Waiting)
		return nil
	}
	return answer(c, cl)
}

// answer asks the open question until it is answered or gone.
func answer(c *cli, cl *control.Client) error {
	resp, err := cl.Do(control.Request{Op: control.OpCard})
	if err != nil || resp.Card == nil {
		return err
	}
	digits := consent.Digits()
	control.WriteCard(c.out, *resp.Card, digits)
	sc := bufio.NewScanner(os.Stdin)
	for sc.Scan() {
		a, complaint := control.ParseAnswer(sc.Text(), digits, *resp.Card)
		if complaint != "" {
			fmt.Fprintf(c.out, "%s\n> ", complaint)
			continue
		}
		_, err := cl.Do(control.Request{Op: control.OpAnswer, ID: resp.Card.Request.ID, Answer: &a})
		if err == nil {
			fmt.Fprintln(c.out, "Answered.")
		}
		return err
	}
	return sc.Err()
}
