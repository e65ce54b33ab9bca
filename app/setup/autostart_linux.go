package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// State tells whether the system starts this program, and why it can't be made
// to; "" when it can.
func (a Autostart) State() (on bool, problem string) {
	p, err := a.places()
	if err != nil {
		return false, err.Error()
	}
	if text, err := os.ReadFile(p.entry); err == nil && !hidden(string(text)) {
		return true, ""
	}
	if _, err := os.Stat(p.wanted); err == nil { // the link leads to a unit
		return true, ""
	}
	if !a.Display && !userManager() {
		return false, "There is neither a desktop here nor a systemd of yours that could start this program. Start it the way that this system starts programs."
	}
	return false, ""
}

// Set has the system start this program from the next log-in on, or not. The
// error is one plain sentence.
func (a Autostart) Set(on bool) error {
	p, err := a.places()
	if err != nil {
		return err
	}
	if !on {
		left, err := a.Book.PutBack(p.wanted, p.unit, p.entry)
		reload()
		if err != nil {
			return fmt.Errorf("what starts this program could not be taken away: %w", err)
		}
		if _, err := os.Stat(p.wanted); err == nil {
			return fmt.Errorf("your systemd was told by somebody else to start it; end that with: systemctl --user disable %s", a.name())
		}
		if still, _ := a.State(); still {
			return fmt.Errorf("%s was changed since this program wrote it, so it was left: take it away yourself", append(left, p.entry)[0])
		}
		return nil
	}
	if to, err := os.Readlink(p.wanted); err == nil && to != p.unit {
		return nil // it is enabled with systemctl
	}
	if a.Display {
		err = a.Book.Write(p.entry, "starts this program when you log in to your desktop", []byte(a.desktopEntry()), 0o600)
	} else if strings.ContainsAny(a.Exe, `"'\`) {
		return fmt.Errorf("systemd starts no program whose path has quotes in it: %s", a.Exe)
	} else if userManager() {
		if err = a.Book.Write(p.unit, "describes this program to your systemd", []byte(a.unit()), 0o600); err == nil {
			err = a.Book.Link(p.wanted, "has your systemd start this program", p.unit)
		}
		reload()
	} else {
		_, why := a.State()
		return errors.New(why)
	}
	if err != nil {
		return fmt.Errorf("this program could not be made to start by itself: %w", err)
	}
	return nil
}

// places are the files: the desktop's entry, systemd's unit, and the link that
// enables that.
type places struct{ entry, unit, wanted string }

func (a Autostart) places() (places, error) {
	config := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		home, err := os.UserHomeDir()
		if err != nil {
			return places{}, errors.New("this user has no home directory, so nothing can be set to start")
		}
		config = filepath.Join(home, ".config")
	}
	units := filepath.Join(config, "systemd", "user")
	return places{entry: filepath.Join(config, "autostart", a.name()+".desktop"), unit: filepath.Join(units, a.name()+".service"),
		wanted: filepath.Join(units, "default.target.wants", a.name()+".service")}, nil
}

// userManager tells whether a systemd of the person's runs.
func userManager() bool {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(dir) {
		return false
	}
	fi, err := os.Stat(filepath.Join(dir, "systemd"))
	return err == nil && fi.IsDir()
}

// reload has systemd read its units anew, where there is one; otherwise it does
// so at the next log-in.
func reload() {
	if !userManager() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = exec.CommandContext(ctx, "systemctl", "--user", "daemon-reload").Run() // the next log-in reads them too
}

// hidden tells whether the person switched an entry off in their desktop's own
// list of programs.
func hidden(entry string) bool {
	for line := range strings.Lines(entry) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch strings.TrimSpace(key) + "=" + strings.ToLower(strings.TrimSpace(value)) {
		case "Hidden=true", "X-GNOME-Autostart-enabled=false":
			return true
		}
	}
	return false
}

func (a Autostart) desktopEntry() string {
	var words []string
	for _, arg := range a.args() {
		words = append(words, desktopQuoted(arg))
	}
	return `[Desktop Entry]
Type=Application
Version=1.0
Name=Local PC Executor
Comment=Lends this computer to an AI agent, on your terms
Exec=` + strings.Join(words, " ") + `
Icon=localpc
Terminal=false
X-GNOME-Autostart-enabled=true
`
}

// desktopQuoted is an argument of Exec: quoted by that key's own rules, and
// then by those of every string in the file.
func desktopQuoted(arg string) string {
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`, `%`, `%%`).Replace(arg) + `"`
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(quoted)
}

func (a Autostart) unit() string {
	args := a.args()
	// Variables are not replaced in the program's own path.
	words := []string{`"` + strings.ReplaceAll(args[0], `%`, `%%`) + `"`}
	for _, arg := range args[1:] {
		words = append(words, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `$$`, `%`, `%%`, "\n", `\n`, "\t", `\t`).Replace(arg)+`"`)
	}
	return `[Unit]
Description=Local PC Executor

[Service]
ExecStart=` + strings.Join(words, " ") + `
Restart=on-failure
RestartSec=5
# It ends what it started by itself, and says so to the hub.
KillMode=mixed
TimeoutStopSec=45

[Install]
WantedBy=default.target
`
}
