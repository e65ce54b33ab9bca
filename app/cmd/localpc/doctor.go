package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"localpc/app/control"
	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/app/tray"
	"localpc/capabilities/shell"
	"localpc/consent"
)

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
	list := append(running(c), contained(ctx), secretsCheck(ctx, c))
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

// running tells of the program that runs: its hub, its sign-in there, and the
// proxy on the way.
func running(c *cli) []check {
	cl, err := control.Dial(c.paths.Socket())
	if err != nil {
		return []check{{"program", false, "not running; start it with localpc"}}
	}
	defer cl.Close()
	resp, err := cl.Do(control.Request{Op: control.OpStatus})
	if err != nil {
		return []check{{"program", false, err.Error()}}
	}
	v := func(t string) string { return consent.Visible(t, false) }
	s := resp.Snapshot
	list := []check{{"program", true, v(s.Line)}, {"policy", true, "questions are put to you"}}
	if s.Policy != "" {
		list[1].Say = "answered beforehand by " + v(s.Policy)
	}
	if !s.Hub.Paired {
		return append(list, check{"hub", false, "not paired; localpc pair says how"})
	}
	hub := check{"hub", s.Hub.Online, control.PairedWords(s.Hub)}
	if s.Problem != "" {
		hub.Say += ": " + v(s.Problem)
	}
	list = append(list, hub)
	if s.Hub.SignIn != "" {
		list = append(list, check{"sign-in", s.State != snapshot.SignIn, v(s.Hub.SignIn)})
	}
	proxy := check{"proxy", true, "the hub is reached without a proxy"}
	if s.Hub.Proxy != "" {
		proxy.Say = "the hub is reached through " + v(s.Hub.Proxy)
	}
	return append(list, proxy)
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

// secretsCheck asks the running program, whose keychain may be another one than
// this terminal's; where none runs, it looks for itself.
func secretsCheck(ctx context.Context, c *cli) check {
	if cl, err := control.Dial(c.paths.Socket()); err == nil {
		defer cl.Close()
		reply, err := cl.Intend(snapshot.Intent{Kind: snapshot.CheckSecrets})
		if err != nil {
			return check{"secrets", false, consent.Visible(err.Error(), false)}
		}
		return check{"secrets", true, consent.Visible(reply.Text, false)}
	}
	if _, err := os.Stat(c.paths.File()); err == nil {
		set, err := settings.Load(c.paths)
		if err != nil {
			return check{"secrets", false, err.Error()}
		}
		if set.Get().Secrets == settings.SecretsFile {
			return vaultCheck(c.paths.Secrets())
		}
	}
	if err := (login.Keychain{Machine: "doctor"}).Check(ctx); err != nil {
		return check{"secrets", false, "the keychain can't be used: unlock it, or install one (gnome-keyring, KWallet); or keep secrets in an encrypted file: localpc secrets file"}
	}
	return check{"secrets", true, "kept in the keychain"}
}

// vaultCheck looks at the encrypted file as far as it can be without its
// passphrase.
func vaultCheck(path string) check {
	var damaged *login.DamagedError
	_, err := login.OpenVault(path, "")
	switch {
	case errors.Is(err, login.ErrPassphrase):
		return check{"secrets", true, "kept in an encrypted file, " + path + "; each start needs its passphrase"}
	case errors.Is(err, fs.ErrNotExist):
		return check{"secrets", false, path + ", the encrypted file of secrets, is missing. Put a copy in its place; or start with --passphrase-file FILE, which makes a new one, and pair again"}
	case errors.As(err, &damaged):
		return check{"secrets", false, damaged.Error()}
	}
	return check{"secrets", false, fmt.Sprint(err)}
}
