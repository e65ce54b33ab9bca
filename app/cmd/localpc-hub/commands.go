package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"localpc/consent"
	"localpc/tunnel/hub/store"
)

// with opens the data for one command. Only what makes something makes new
// data: elsewhere a wrong --data would look like a hub that knows nobody. A hub
// that runs on the data looks at once at what was changed.
func (c *cli) with(do func(context.Context, *store.Store, string) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if !store.Exists(c.data) {
			if c.args[1] != "add" {
				return c.noData()
			}
			fmt.Fprintf(c.errs, "New data for a hub is made in %s.\n", c.data)
		}
		s, err := store.OpenBeside(ctx, c.data)
		if err != nil {
			return err
		}
		arg := ""
		if len(c.args) > 2 {
			arg = c.args[2]
		}
		err = do(ctx, s, arg)
		if err == nil && c.args[1] != "list" {
			err = s.Poke()
		}
		return errors.Join(err, s.Close())
	}
}

func (c *cli) noData() error {
	if _, err := os.ReadDir(c.data); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("this account may not read %s; run the command as the account that the hub runs as, or as root", c.data)
	}
	return fmt.Errorf("there is no hub's data in %s; name the right folder with --data DIR", c.data)
}

func (c *cli) keyAdd(ctx context.Context, s *store.Store, name string) error {
	user, err := c.whose(ctx, s)
	if err != nil {
		return err
	}
	k, err := s.AddKey(ctx, user, name)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, k.Secret)
	fmt.Fprintf(c.errs, "This key is shown once. It is known as %s; end it with: localpc-hub key revoke %s --data %s\n", k.ID, k.ID, quoted(c.data))
	address, err := s.Address(ctx)
	if err == nil && address != "" {
		fmt.Fprintf(c.errs, "An E2B program takes it with E2B_API_URL=%s/api and E2B_SANDBOX_URL=%s/sbx\n", address, address)
	}
	return err
}

func (c *cli) keyList(ctx context.Context, s *store.Store, _ string) error {
	keys, err := s.Keys(ctx, "")
	if err != nil || c.json {
		return c.list(keys, err)
	}
	names, err := c.people(ctx, s)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tKEY\t"+names.head()+"MADE\tLAST USED")
	for _, k := range keys {
		fmt.Fprintf(w, "%s\t%s\t%s…\t%s%s\t%s\n", k.ID, shown(k.Name), k.Prefix, names.of(k.User), moment(k.Created), moment(k.LastUsed))
	}
	return w.Flush()
}

func (c *cli) keyRevoke(ctx context.Context, s *store.Store, id string) error {
	if err := s.RevokeKey(ctx, "", id); errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no key %s; localpc-hub key list shows them", shown(id))
	} else if err != nil {
		return err
	}
	fmt.Fprintln(c.errs, "The key does not work any more. What was opened with it ends now.")
	return nil
}

func (c *cli) machineAdd(ctx context.Context, s *store.Store, name string) error {
	address := strings.TrimSuffix(c.public, "/")
	if address == "" {
		var err error
		if address, err = s.Address(ctx); err != nil {
			return err
		}
	}
	if address == "" {
		return errors.New("the hub's address is not known yet; start the hub first, or name it with --public-url URL")
	}
	user, err := c.whose(ctx, s)
	if err != nil {
		return err
	}
	token, err := s.AddPairingToken(ctx, user, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s#%s\n", address, token)
	fmt.Fprintln(c.errs, "This line is shown once, and good for one computer and one day. On that computer: localpc pair LINE")
	return nil
}

func (c *cli) machineList(ctx context.Context, s *store.Store, _ string) error {
	machines, err := s.Machines(ctx, "")
	if err != nil || c.json {
		return c.list(machines, err)
	}
	names, err := c.people(ctx, s)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\t"+names.head()+"STATE\tSYSTEM\tLAST SEEN\tNOTE")
	for _, m := range machines {
		state, note := "offline", ""
		if m.Online {
			state = "online"
		}
		if !m.RecordCut.IsZero() {
			note = "its record was cut off or changed before " + moment(m.RecordCut)
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\t%s\t%s\t%s\n", m.ID, shown(m.Name), names.of(m.User), state, m.Platform+" "+m.Arch, moment(m.LastSeen), note)
	}
	return w.Flush()
}

func (c *cli) machineRevoke(ctx context.Context, s *store.Store, id string) error {
	if err := s.RevokeMachine(ctx, "", id); errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no paired computer %s; localpc-hub machine list shows them", shown(id))
	} else if err != nil {
		return err
	}
	fmt.Fprintln(c.errs, "The computer cannot connect any more. A running hub lets it go now.")
	return nil
}

func (c *cli) list(v any, err error) error {
	if err != nil {
		return err
	}
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// quoted is a path that can be typed as it stands.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// shown makes a name from elsewhere safe and short enough for a terminal.
func shown(s string) string {
	s = consent.Visible(s, false)
	if r := []rune(s); len(r) > 60 {
		s = string(r[:59]) + "…"
	}
	return s
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04")
}
