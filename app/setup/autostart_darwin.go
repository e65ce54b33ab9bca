package setup

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func (a Autostart) agent() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("this user has no home directory, so nothing can be set to start")
	}
	return filepath.Join(home, "Library", "LaunchAgents", "executor.localpc."+a.name()+".plist"), nil
}

// State tells whether the system starts this program, and why it can't be made
// to; "" when it can.
func (a Autostart) State() (on bool, problem string) {
	path, err := a.agent()
	if err != nil {
		return false, err.Error()
	}
	_, err = os.Stat(path)
	return err == nil, ""
}

// Set has the system start this program from the next log-in on, or not. The
// error is one plain sentence.
func (a Autostart) Set(on bool) error {
	path, err := a.agent()
	if err != nil {
		return err
	}
	if on {
		if err := a.Book.Write(path, "starts this program when you log in", a.plist(), 0o644); err != nil {
			return fmt.Errorf("this program could not be made to start by itself: %w", err)
		}
		return nil
	}
	if _, err := a.Book.PutBack(path); err != nil {
		return fmt.Errorf("what starts this program could not be taken away: %w", err)
	}
	if still, _ := a.State(); still {
		return fmt.Errorf("%s was changed since this program wrote it, so it was left: take it away yourself", path)
	}
	return nil
}

func (a Autostart) plist() []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
<key>Label</key><string>executor.localpc.` + a.name() + `</string>
<key>RunAtLoad</key><true/>
<key>ProcessType</key><string>Interactive</string>
<key>ProgramArguments</key><array>
`)
	for _, arg := range a.args() {
		b.WriteString("<string>")
		_ = xml.EscapeText(&b, []byte(arg)) // a Buffer takes everything
		b.WriteString("</string>\n")
	}
	b.WriteString("</array>\n</dict></plist>\n")
	return b.Bytes()
}

func reload() {}
