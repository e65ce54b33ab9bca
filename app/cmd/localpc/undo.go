package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"localpc/app/control"
	"localpc/app/snapshot"
	"localpc/consent"
)

func undoFlagSet(c *cli, f *flag.FlagSet) {
	jsonFlag(c, f)
	f.BoolVar(&c.anyway, "anyway", false, "overwrite newer work, which is kept")
}

// undo lists what can be undone, or undoes an entry or its session.
func undo(c *cli, args []string) error {
	cl, err := control.Dial(c.paths.Socket())
	if err != nil {
		return err
	}
	defer cl.Close()
	in := snapshot.Intent{Kind: snapshot.Undo}
	switch {
	case len(args) == 0:
		return listUndo(c, cl)
	case len(args) == 1 && args[0] != "session":
		in.Entry = args[0]
	case len(args) == 2 && args[0] == "session":
		in.Kind, in.Entry = snapshot.UndoSession, args[1]
	default:
		return usageError("undo takes an entry, session ENTRY, or nothing to list what can be undone")
	}
	if c.anyway {
		in.Way = "anyway"
	}
	reply, err := cl.Intend(in)
	if err != nil {
		return err
	}
	if reply.Question != "" {
		return errors.New(consent.Visible(reply.Question, false) + " Say so with --anyway")
	}
	fmt.Fprintln(c.out, consent.Visible(reply.Text, false))
	return nil
}

func listUndo(c *cli, cl *control.Client) error {
	resp, err := cl.Do(control.Request{Op: control.OpStatus})
	if err != nil {
		return err
	}
	list := []snapshot.Entry{}
	for _, e := range resp.Snapshot.Entries {
		if e.CanUndo {
			list = append(list, e)
		}
	}
	if c.json {
		return json.NewEncoder(c.out).Encode(list)
	}
	for _, e := range list {
		fmt.Fprintf(c.out, "%s  %s  %s: %s\n", e.ID, e.Time.Local().Format(time.DateTime), consent.Visible(e.Who, false), consent.Visible(e.What, false))
	}
	if len(list) == 0 {
		fmt.Fprintln(c.out, "Nothing can be undone.")
	}
	return nil
}
