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
	"localpc/app/store"
	"localpc/app/tray"
	"localpc/capabilities/shell"
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
	st, err := store.Open(ctx, c.paths.Data)
	if err != nil {
		return err
	}
	defer st.Close()
	if len(args) == 2 {
		id := args[1]
		if id == "all" {
			id = ""
		}
		n, err := st.Revoke(ctx, id)
		switch {
		case err != nil:
			return err
		case n == 0 && id != "":
			return fmt.Errorf("there is no grant %s; localpc grants lists them", consent.Visible(id, false))
		}
		fmt.Fprintf(c.out, "%d revoked\n", n)
		return nil
	}
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
	w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tWHO\tRULE\tHOLDS\tLAST USED")
	for _, g := range list {
		yes := "allow "
		if g.Deny {
			yes = "deny "
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", g.ID, consent.Visible(g.Name, false), consent.Visible(yes+policy.RuleWords(g.Rule, g.Choice), false), policy.ScopeWords(g.Scope), when(g.LastUsed))
	}
	return w.Flush()
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

// recordCommand verifies, exports or shows the end of the record.
func recordCommand(c *cli, args []string) error {
	ctx := context.Background()
	const use = usageError("record takes verify, export FILE (- for standard output), or tail")
	if len(args) == 0 {
		return use
	}
	st, err := store.OpenToRead(c.paths.Data)
	if err != nil {
		return err
	}
	defer st.Close()
	switch {
	case args[0] == "verify" && len(args) == 1:
		return verify(ctx, c, st)
	case args[0] == "export" && len(args) == 2 && args[1] == "-":
		return record.Export(ctx, st, c.out)
	case args[0] == "export" && len(args) == 2:
		f, err := os.OpenFile(args[1], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(record.Export(ctx, st, f), f.Close())
	case args[0] == "tail" && len(args) == 1:
		last, _, err := st.LastEntry(ctx, "")
		if err != nil {
			return err
		}
		return st.EachEntry(ctx, max(1, last.Seq-19), func(e consent.Entry) error {
			if c.json {
				return json.NewEncoder(c.out).Encode(e)
			}
			_, err := fmt.Fprintf(c.out, "%d  %s  %-8s  %s\n", e.Seq, when(e.Time), e.Kind, consent.Visible(entryWords(e), false))
			return err
		})
	}
	return use
}

// entryWords is one entry of the record in a few words.
func entryWords(e consent.Entry) string {
	switch e.Kind {
	case record.KindDecision:
		var d record.Decision
		if json.Unmarshal(e.Body, &d) == nil {
			return d.Request.Principal.Name + ": " + d.Request.Title + " · " + string(d.Decision.Outcome)
		}
	case record.KindOutcome:
		var o record.Outcome
		if json.Unmarshal(e.Body, &o) == nil {
			return o.State + " · " + o.Result
		}
	case record.KindEvent:
		var ev record.Event
		if json.Unmarshal(e.Body, &ev) == nil {
			return ev.What + " " + ev.Detail
		}
	}
	return ""
}

func verify(ctx context.Context, c *cli, st *store.Store) error {
	set, err := settings.Load(c.paths)
	if err != nil {
		return err
	}
	key, kerr := login.ReadRecordKey(ctx, login.Keychain{Machine: set.Get().MachineID})
	report, err := record.Verify(ctx, st, key)
	if err != nil {
		return err
	}
	if c.json {
		err = printJSON(c, report)
	} else if report.OK {
		fmt.Fprintf(c.out, "The record is whole: %d entries since %s, head %.12s…\n", report.Entries, when(report.Since), report.Head)
		if kerr != nil {
			fmt.Fprintln(c.out, "Its key could not be compared with the keychain's, which can't be read here.")
		}
		if report.Unkept > 0 {
			fmt.Fprintf(c.out, "%d parts of it were signed with a key that was kept in memory only.\n", report.Unkept)
		}
	}
	if err == nil && !report.OK {
		err = errors.New(report.Problem)
	}
	return err
}

// check is one line of doctor.
type check struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Say  string `json:"say"`
}

func doctor(c *cli, args []string) error {
	if len(args) != 0 {
		return usageError(fmt.Sprintf("doctor takes no %q", args[0]))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	list := []check{running(c), contained(ctx), keychainCheck(ctx)}
	if hasDisplay() {
		list = append(list, check{"display", true, "cards and windows can be shown"})
		if tray.HostPresent(ctx) {
			list = append(list, check{"tray", true, "the desktop shows tray icons"})
		} else {
			list = append(list, check{"tray", false, "this desktop shows no tray icons; a small window takes the icon's place"})
		}
	} else {
		list = append(list, check{"display", false, "no display: questions are asked in the terminal where localpc was started"})
	}
	if c.json {
		return printJSON(c, list)
	}
	for _, k := range list {
		mark := "ok  "
		if !k.OK {
			mark = "!   "
		}
		fmt.Fprintf(c.out, "%s%-10s %s\n", mark, k.What, k.Say)
	}
	return nil
}

func running(c *cli) check {
	cl, err := control.Dial(c.paths.Socket())
	if err != nil {
		return check{"program", false, "not running; start it with localpc"}
	}
	defer cl.Close()
	resp, err := cl.Do(control.Request{Op: control.OpStatus})
	if err != nil {
		return check{"program", false, err.Error()}
	}
	return check{"program", true, consent.Visible(resp.Snapshot.Line, false)}
}

func contained(ctx context.Context) check {
	exe, err := os.Executable()
	if err != nil {
		return check{"contain", false, err.Error()}
	}
	sh, err := shell.New(shell.Options{Spawn: filepath.Join(filepath.Dir(exe), "localpc-spawn")})
	if err != nil {
		return check{"contain", false, err.Error()}
	}
	defer sh.Close()
	if why := sh.Probe(ctx); why != "" {
		return check{"contain", false, why}
	}
	return check{"contain", true, "commands can run contained"}
}

func keychainCheck(ctx context.Context) check {
	_, err := login.Keychain{Machine: "doctor"}.Get(ctx, "probe")
	if err == nil || errors.Is(err, login.ErrMissing) {
		return check{"keychain", true, "the keychain answers"}
	}
	return check{"keychain", false, "the keychain can't be used: unlock it, or install one (gnome-keyring, KWallet)"}
}
