package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"localpc/app/control"
	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/app/store"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/consent/record"
)

// grants lists what is remembered, or revokes it.
func grants(c *cli, args []string) error {
	ctx := context.Background()
	if len(args) > 0 && (args[0] != "revoke" || len(args) != 2) {
		return usageError("grants takes nothing, or revoke ID, or revoke all")
	}
	if _, err := os.Stat(filepath.Join(c.paths.Data, "machine.db")); err != nil {
		return fmt.Errorf("there are no grants in %s yet", c.paths.Data)
	}
	if len(args) == 2 {
		return revoke(ctx, c, args[1])
	}
	st, err := store.OpenToRead(c.paths.Data)
	if err != nil {
		return err
	}
	defer st.Close()
	list, err := st.Remembered(ctx, "", "")
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c, append([]consent.Stored{}, list...))
	}
	if len(list) == 0 {
		fmt.Fprintln(c.out, "Nothing is remembered.")
		return nil
	}
	home, _ := os.UserHomeDir() // without one, paths are whole
	w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tWHO\tRULE\tHOLDS\tLAST USED")
	for _, g := range list {
		yes := "allow "
		if g.Deny {
			yes = "deny "
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", g.ID, consent.Visible(g.Name, false), consent.Visible(yes+policy.RuleWords(policy.AtHome(g.Rule, home), g.Choice), false), policy.ScopeWords(g.Scope), when(g.LastUsed))
	}
	return w.Flush()
}

// revoke asks the running program, which alone may write its record; where
// none runs it takes that part itself.
func revoke(ctx context.Context, c *cli, id string) error {
	if id == "all" {
		id = ""
	}
	release, err := control.Lock(c.paths.Lock())
	if errors.Is(err, control.ErrRunning) {
		return ask(c, snapshot.Intent{Kind: snapshot.Revoke, Text: id})
	}
	if err != nil {
		return err
	}
	defer release()
	st, err := store.Open(ctx, c.paths.Data)
	if err != nil {
		return err
	}
	defer st.Close()
	set, err := settings.Load(c.paths)
	if err != nil {
		return err
	}
	keeper, err := readSecrets(c, set)
	if err != nil {
		return err
	}
	key, kept, err := login.RecordKey(ctx, keeper)
	if key == nil {
		return err
	}
	rec, err := record.Open(ctx, record.Options{Rows: st, Key: key, Kept: kept})
	if err != nil {
		return err
	}
	n, err := st.Revoke(ctx, id)
	switch {
	case err != nil:
		return err
	case n == 0 && id != "":
		return fmt.Errorf("there is no grant %s; localpc grants lists them", consent.Visible(id, false))
	}
	fmt.Fprintf(c.out, "%d revoked.\n", n)
	return rec.Happened(ctx, "revoked", id)
}

func when(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}

func printJSON(c *cli, v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
