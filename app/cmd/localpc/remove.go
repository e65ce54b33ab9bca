package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"

	"localpc/app/control"
	"localpc/app/desklink"
	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/setup"
	"localpc/app/snapshot"
	"localpc/app/store"
	"localpc/app/tray"
	"localpc/capabilities/files"
	"localpc/consent"
	"localpc/consent/record"
	"localpc/tunnel"
)

type removeFlags struct{ keep, erase, yes bool }

func removeFlagSet(c *cli, f *flag.FlagSet) {
	f.BoolVar(&c.remove.keep, "keep", false, "keep the record of what was done here")
	f.BoolVar(&c.remove.erase, "erase", false, "erase it too")
	f.BoolVar(&c.remove.yes, "yes", false, "ask nothing")
	passphraseFlag(c, f)
}

// removeCommand takes this program off this computer, running or not.
func removeCommand(c *cli, args []string) error {
	if len(args) != 0 {
		return usageError(fmt.Sprintf("remove takes no %q", args[0]))
	}
	if c.remove.keep && c.remove.erase {
		return usageError("--keep and --erase exclude each other")
	}
	if err := setup.Ours(c.paths); err != nil {
		return err
	}
	if err := c.sure(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	release, err := c.lockForRemoval(ctx)
	if err != nil {
		return err
	}
	defer release()
	_, err = c.takeAway(ctx, c.remove.keep)
	return err
}

// sure asks what was not said.
func (c *cli) sure() error {
	r := &c.remove
	if r.yes && (r.keep || r.erase) {
		return nil
	}
	if !canType() {
		return usageError("say what is to happen with the record of what was done here, --keep or --erase, and --yes")
	}
	in := bufio.NewScanner(os.Stdin)
	if !r.keep && !r.erase {
		fmt.Fprintf(c.out, "Keep the record of what was done here, with its outputs, in %s? [keep/erase] ", c.paths.Data)
		in.Scan()
		switch strings.ToLower(strings.TrimSpace(in.Text())) {
		case "keep":
			r.keep = true
		case "erase":
			r.erase = true
		default:
			return errors.New("nothing was removed")
		}
	}
	if !r.yes {
		fmt.Fprint(c.out, "Remove Local PC Executor from this computer: sign-in, keys, settings, permissions? Type yes: ")
		if in.Scan(); strings.ToLower(strings.TrimSpace(in.Text())) != "yes" {
			return errors.New("nothing was removed")
		}
	}
	return nil
}

// endWithin is how long a program that runs may take to end.
const endWithin = time.Minute

// lockForRemoval has a program that runs do what only it can, and end.
func (c *cli) lockForRemoval(ctx context.Context) (release func(), err error) {
	asked := false
	for end := time.Now().Add(endWithin); ; {
		release, err = control.Lock(c.paths.Lock())
		if !errors.Is(err, control.ErrRunning) {
			return release, err
		}
		if !asked {
			choice := "erase"
			if c.remove.keep {
				choice = "keep"
			}
			switch err := ask(c, snapshot.Intent{Kind: snapshot.Remove, Text: choice, Way: "quit"}); {
			case err == nil:
				asked = true
			case !errors.Is(err, control.ErrNotRunning): // it begins, or ends, at this moment
				return nil, err
			}
		}
		if time.Now().After(end) {
			return nil, errors.New("the program that runs does not end; end it, and remove once more")
		}
		select {
		case <-ctx.Done():
			return nil, errors.New("interrupted; run localpc remove once more to go on")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// takeAway removes everything, with the lock. A step that fails is named and
// does not stop the others; what it takes to try again stays then. It prints
// what stays, and returns what is unusual about that.
func (c *cli) takeAway(ctx context.Context, keep bool) (notes []string, err error) {
	ctx = context.WithoutCancel(ctx) // what is half done is done, not left
	var failed []error
	spare := setup.Spare{Record: keep}
	note := func(what string, err error) {
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", what, err))
			spare.Settings = true
		}
	}
	s, err := savedSettings(c.paths)
	note("settings", err)
	say := func(format string, args ...any) {
		notes = append(notes, fmt.Sprintf(format, args...))
		fmt.Fprintln(c.out, notes[len(notes)-1])
	}
	if !c.signOff(ctx, s) {
		say("The hub %s could not be told: take this computer away on its page too.", consent.Visible(s.Hub, false))
	}
	if _, err := files.Recover(filepath.Join(c.paths.Data, "journal"), slog.New(slog.DiscardHandler)); err != nil {
		spare.Journal = true
		note("a file that was being written could not be put back", err)
	}
	if err := c.forget(ctx, s); err != nil {
		spare.Record = true // it says what there is to delete
		note("keys and sign-ins", err)
	}
	changed, err := setup.Undo(setup.NewBook(c.paths.Data))
	note("what was changed outside", err)
	note("settings of the windows", setup.Toolkit())
	others, err := setup.Data(c.paths, spare)
	note("data", err)

	for _, path := range changed {
		say("Changed by somebody since, so it stays as it is: %s", path)
	}
	for _, path := range others {
		say("Not this program's, so it stays: %s", path)
	}
	if len(failed) > 0 {
		return notes, &unfinished{errors.Join(failed...)}
	}
	fmt.Fprintln(c.out, "Local PC Executor was removed from this computer.")
	if keep {
		fmt.Fprintf(c.out, "The record of what was done here, with its outputs, stays in %s. localpc remove --erase takes that away too.\n", c.paths.Data)
	}
	fmt.Fprintln(c.out, "The programs themselves, and the folders that you lent, are where they were.")
	return notes, nil
}

// unfinished is a removal that left something.
type unfinished struct{ what error }

func (u *unfinished) Error() string {
	return "not everything could be removed:\n" + u.what.Error() + "\nMend that, and run localpc remove once more"
}

func (u *unfinished) Unwrap() error { return u.what }

// lastWordFor is how long the last word is left on the screen.
const lastWordFor = 10 * time.Minute

// farewell tells a person at a display how the removal went: in the window in
// which it began, until that is closed, or else by a notification.
func (c *cli) farewell(r *removal, notes []string, err error) {
	if !hasDisplay() {
		return
	}
	if r.keep {
		notes = append(notes, "The record of what was done here stays in "+c.paths.Data+".")
	}
	word := desklink.Removed{Notes: notes}
	var u *unfinished
	switch {
	case errors.As(err, &u):
		word.Problem = u.what.Error()
	case err != nil:
		word.Problem = err.Error()
	}
	if r.desktop != nil {
		defer r.desktop.Close()
		if r.desktop.LastWord(word, lastWordFor) {
			return
		}
	}
	title, words := "Local PC Executor was removed", "Nothing of it runs on this computer any more."
	switch {
	case err != nil:
		title, words = "Not everything could be removed", "Run localpc remove in a terminal: it says what is left, and tries again."
	case r.keep:
		words = "The record of what was done here stays in " + c.paths.Data + "."
	}
	note := tray.NewNotifier(tray.NotifierOptions{Show: func() {}, Log: slog.New(slog.DiscardHandler)})
	note.Show(title, words)
	time.Sleep(farewellFor) // to be sent; Close would take it off the screen
}

const farewellFor = time.Second

// savedSettings reads the settings without making any.
func savedSettings(p settings.Paths) (s settings.Settings, err error) {
	data, err := os.ReadFile(p.File())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil // an earlier removal came that far
	}
	if err != nil {
		return s, err
	}
	return s, toml.Unmarshal(data, &s)
}

// signOffWithin bounds how long a hub may take.
const signOffWithin = 8 * time.Second

// signOff gives the sign-in back to its hub, where the program that ran has not
// done so. A hub that can't be told does not keep this program here.
func (c *cli) signOff(ctx context.Context, s settings.Settings) (told bool) {
	if s.Hub == "" || s.Hub == settings.HubThis {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, signOffWithin)
	defer cancel()
	keeper, err := c.keeperOf(s)
	var t login.Tokens
	if err == nil {
		t, err = login.Load(ctx, keeper, login.TokenItem(s.Hub))
	}
	if errors.Is(err, login.ErrMissing) {
		return true
	}
	var network *tunnel.Network
	if err == nil {
		network, err = tunnel.NewNetwork(s.CAFile)
	}
	if err == nil {
		err = login.Revoke(ctx, network.Client(), t)
	}
	return err == nil && t.RevokeURL != ""
}

// keeperOf is what keeps the secrets, as far as it can be opened here.
func (c *cli) keeperOf(s settings.Settings) (login.Keeper, error) {
	switch {
	case s.Secrets != settings.SecretsFile:
		return login.Keychain{Machine: s.MachineID}, nil
	case c.passphraseFile == "":
		return login.LockedVault(c.paths.Secrets()), nil
	}
	passphrase, err := login.ReadPassphrase(c.passphraseFile)
	if err != nil {
		return nil, err
	}
	return login.OpenVault(c.paths.Secrets(), passphrase)
}

// forget deletes every item of this computer from the keychain. The encrypted
// file goes with the data.
func (c *cli) forget(ctx context.Context, s settings.Settings) error {
	if s.MachineID == "" {
		return nil
	}
	hubs, used := c.past(ctx)
	k := login.Keychain{Machine: s.MachineID}
	for _, item := range login.Items(append(hubs, settings.HubThis, settings.HubAutoGPT, s.Hub)...) {
		err := k.Delete(ctx, item)
		switch {
		case err == nil:
		case s.Secrets == settings.SecretsFile, errors.Is(err, login.ErrAbsent) && !used:
			return nil // it never had anything, or has nothing that still opens anything
		case errors.Is(err, login.ErrAbsent):
			return fmt.Errorf("they are in the keychain of your desktop, which can't be reached from here: %w", err)
		default:
			return fmt.Errorf("the keychain can't be used; unlock it: %w", err)
		}
	}
	return nil
}

// past tells which hubs this computer was ever paired with, and whether a key
// was ever kept in the keychain, as the record has it.
func (c *cli) past(ctx context.Context) (hubs []string, used bool) {
	st, err := store.OpenToRead(c.paths.Data)
	if err != nil {
		return nil, false
	}
	defer st.Close()
	err = errors.Join(st.Since(ctx, record.KindEvent, time.Time{}, func(e consent.Entry) error {
		var ev record.Event
		if json.Unmarshal(e.Body, &ev) == nil && ev.What == "paired" {
			hubs = append(hubs, ev.Detail)
		}
		return nil
	}), st.Since(ctx, record.KindEpoch, time.Time{}, func(e consent.Entry) error {
		var ep record.Epoch
		used = used || json.Unmarshal(e.Body, &ep) == nil && ep.Kept
		return nil
	}))
	return hubs, used || err != nil
}
