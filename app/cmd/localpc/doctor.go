package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"localpc/app/control"
	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/app/tray"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/shell"
	"localpc/consent"
)

// selfTest looks at what works on this computer. Of the program that runs it is
// told, by itself or over the control socket.
type selfTest struct {
	paths settings.Paths
	// status is the running program's state; an error says that none runs.
	status func() (snapshot.Snapshot, error)
	// secrets says where that program keeps secrets, or why it can't.
	secrets func(context.Context) (string, error)
	// hands touch the display; nil where there is none.
	hands hands.Hands
}

// selfTestWithin bounds doctor.
const selfTestWithin = 20 * time.Second

func doctor(c *cli, args []string) error {
	if len(args) != 0 {
		return usageError(fmt.Sprintf("doctor takes no %q", args[0]))
	}
	ctx, cancel := context.WithTimeout(context.Background(), selfTestWithin)
	defer cancel()
	t := selfTest{paths: c.paths}
	if cl, err := control.Dial(c.paths.Socket()); err == nil {
		defer cl.Close()
		t.status = func() (snapshot.Snapshot, error) {
			resp, err := cl.Do(control.Request{Op: control.OpStatus})
			if err != nil {
				return snapshot.Snapshot{}, err
			}
			return *resp.Snapshot, nil
		}
		t.secrets = func(context.Context) (string, error) {
			reply, err := cl.Intend(snapshot.Intent{Kind: snapshot.CheckSecrets})
			return reply.Text, err
		}
	}
	if exe, err := os.Executable(); err == nil && hasDisplay() {
		h := handsOf(exe, c.paths.Display(), slog.New(slog.DiscardHandler))
		defer h.Close()
		t.hands = h
	}
	list := t.checks(ctx)
	if c.json {
		return printJSON(c, list)
	}
	for _, k := range list {
		mark := "ok  "
		if !k.OK {
			mark = "!   "
		}
		fmt.Fprintf(c.out, "%s%-10s %s\n", mark, k.Name, k.Text)
		if k.Remedy != "" {
			fmt.Fprintf(c.out, "    %-10s %s\n", "", k.Remedy)
		}
	}
	return nil
}

// selfTest is the running program's own.
func (p *parts) selfTest(ctx context.Context) []snapshot.Check {
	t := selfTest{paths: p.paths,
		status: func() (snapshot.Snapshot, error) { return p.machine.Snapshot(), nil },
		secrets: func(ctx context.Context) (string, error) {
			reply, err := p.machine.Intend(ctx, snapshot.Intent{Kind: snapshot.CheckSecrets})
			return reply.Text, err
		}}
	if p.hands != nil {
		t.hands = p.hands
	}
	return t.checks(ctx)
}

func good(name, text string) snapshot.Check {
	return snapshot.Check{Name: name, OK: true, Text: consent.Visible(text, false)}
}

func bad(name, text, remedy string) snapshot.Check {
	return snapshot.Check{Name: name, Text: consent.Visible(text, false), Remedy: remedy}
}

// checks are all lines of the self-test.
func (t selfTest) checks(ctx context.Context) []snapshot.Check {
	list := append(t.running(), contained(ctx), t.secretsCheck(ctx))
	if !hasDisplay() {
		return append(list, bad("display", "no display: questions are asked in the terminal where localpc was started", ""))
	}
	icon := bad("tray", "this desktop shows no tray icons; a small window takes the icon's place", "")
	if tray.HostPresent(ctx) {
		icon = good("tray", "the desktop shows tray icons")
	}
	return append(append(list, good("display", "cards and windows can be shown"), icon), t.atDisplay(ctx)...)
}

// running tells of the program that runs: its hub, its sign-in there, and the
// proxy on the way.
func (t selfTest) running() []snapshot.Check {
	if t.status == nil {
		return []snapshot.Check{bad("program", "not running; start it with localpc", "")}
	}
	s, err := t.status()
	if err != nil {
		return []snapshot.Check{bad("program", err.Error(), "")}
	}
	policy := good("policy", "questions are put to you")
	if s.Policy != "" {
		policy = good("policy", "answered beforehand by "+s.Policy)
	}
	list := []snapshot.Check{good("program", s.Line), policy}
	if !s.Hub.Paired {
		return append(list, bad("hub", "not paired; localpc pair says how", ""))
	}
	hub := snapshot.Check{Name: "hub", OK: s.Hub.Online, Text: control.PairedWords(s.Hub)}
	if s.Problem != "" {
		hub.Text += ": " + consent.Visible(s.Problem, false)
	}
	list = append(list, hub)
	if s.Hub.SignIn != "" {
		list = append(list, snapshot.Check{Name: "sign-in", OK: s.State != snapshot.SignIn, Text: consent.Visible(s.Hub.SignIn, false)})
	}
	if s.Hub.Proxy != "" {
		return append(list, good("proxy", "the hub is reached through "+s.Hub.Proxy))
	}
	return append(list, good("proxy", "the hub is reached without a proxy"))
}

func contained(ctx context.Context) snapshot.Check {
	exe, err := os.Executable()
	if err != nil {
		return bad("contain", err.Error(), "")
	}
	sh, err := shell.New(shell.Options{Spawn: filepath.Join(filepath.Dir(exe), "localpc-spawn")})
	if err != nil {
		return bad("contain", err.Error(), "")
	}
	defer sh.Close()
	if why := sh.Probe(ctx); why != "" {
		return bad("contain", why, "")
	}
	return good("contain", "commands can run contained")
}

// secretsCheck asks the running program, whose keychain may be another one than
// this terminal's; where none runs, it looks for itself.
func (t selfTest) secretsCheck(ctx context.Context) snapshot.Check {
	const name = "secrets"
	if t.secrets != nil {
		where, err := t.secrets(ctx)
		if err != nil {
			return bad(name, err.Error(), "")
		}
		return good(name, where)
	}
	if _, err := os.Stat(t.paths.File()); err == nil {
		set, err := settings.Load(t.paths)
		if err != nil {
			return bad(name, err.Error(), "")
		}
		if set.Get().Secrets == settings.SecretsFile {
			return vaultCheck(t.paths.Secrets())
		}
	}
	if err := (login.Keychain{Machine: "doctor"}).Check(ctx); err != nil {
		return bad(name, "the keychain can't be used", "Unlock it, or install one (gnome-keyring, KWallet). Or keep secrets in an encrypted file: localpc secrets file")
	}
	return good(name, "kept in the keychain")
}

// vaultCheck looks at the encrypted file as far as it can be without its
// passphrase.
func vaultCheck(path string) snapshot.Check {
	const name = "secrets"
	var damaged *login.DamagedError
	_, err := login.OpenVault(path, "")
	switch {
	case errors.Is(err, login.ErrPassphrase):
		return good(name, "kept in an encrypted file, "+path+"; each start needs its passphrase")
	case errors.Is(err, fs.ErrNotExist):
		return bad(name, path+", the encrypted file of secrets, is missing", "Put a copy in its place. Or start with --passphrase-file FILE, which makes a new one, and pair again")
	case errors.As(err, &damaged):
		return bad(name, damaged.Error(), "")
	}
	return bad(name, fmt.Sprint(err), "")
}
