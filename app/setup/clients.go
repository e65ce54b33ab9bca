package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// serverName is what our entry is called in the programs' files.
const serverName = "localpc"

// Clients are the programs on this computer that can be connected to it: each
// keeps the MCP servers that it uses in a file of its own.
type Clients struct {
	Book *Book
	Exe  string // this program, an absolute path
	// Data is the data directory where it is not the usual one, else "".
	Data string
	// Home is the person's home directory, System the runtime.GOOS it is of, and
	// Env their environment.
	Home, System string
	Env          func(string) string
}

// Client is one such program as it is now.
type Client struct {
	ID, Name string
	// Found: it is on this computer. Connected: our entry is in its File, and
	// leads to the hub that was asked about.
	Found, Connected bool
	File             string
	// Lines are what Connect puts there, or the person.
	Lines []string
	// Problem says in one sentence why Connect can't: Lines have to be put there
	// by hand. "" when it can.
	Problem string
	// Next is what to do once it is connected, Around which of its own tools do
	// not ask anybody here, Off how they are switched off: sentences, and the
	// exact lines.
	Next, Around, Off string
	OffLines          []string
}

// errByHand is a file that only its owner should change; the sentence says why.
type errByHand string

func (e errByHand) Error() string { return string(e) }

// List tells of every known program. hub is the address of the hub that they
// go through, "" for the one inside.
func (c Clients) List(hub string) []Client {
	var out []Client
	for i := range known {
		out = append(out, c.look(&known[i], hub))
	}
	return out
}

func (c Clients) look(k *kind, hub string) Client {
	s := Client{ID: k.id, Name: k.name, Next: k.next, Around: k.around, Off: k.off, OffLines: k.offLines}
	if hub != "" && k.nextOfHub != "" {
		s.Next = k.nextOfHub
	}
	s.File = resolved(k.file(c))
	want := k.entry(c, hub)
	if want == nil {
		s.Problem = k.noHub
		s.Lines = []string{hub + "/mcp"}
		s.Found = c.found(k)
		return s
	}
	s.Lines = k.format.lines(want)
	s.Found = c.found(k)
	data, _, err := readFile(s.File)
	if errors.Is(err, fs.ErrNotExist) {
		return s
	}
	if err == nil {
		s.Connected = leads(k.format.entry(data), hub)
		_, err = k.format.put(data, want)
	}
	if err != nil {
		s.Problem = byHand(k.name, err)
	}
	return s
}

// byHand says why a file is left alone.
func byHand(name string, err error) string {
	var why errByHand
	if errors.As(err, &why) {
		return string(why)
	}
	return "The settings file of " + name + " can't be read, so it is left as it is. Put the lines there by hand."
}

// Connect puts our entry into a program's file, and what was there into the
// book. The error is one plain sentence.
func (c Clients) Connect(id, hub string) (Client, error) {
	k, err := named(id)
	if err != nil {
		return Client{}, err
	}
	s := c.look(k, hub)
	if s.Problem != "" {
		return s, errByHand(s.Problem)
	}
	var unfit error // what is there by now
	err = c.Book.WriteEntry(s.File, "connects "+k.name+" to this computer", k.format.name(), func(before []byte) (after []byte, err error) {
		after, unfit = k.format.put(before, k.entry(c, hub))
		return after, unfit
	})
	if unfit != nil {
		return s, errByHand(byHand(k.name, unfit))
	}
	if err != nil {
		return s, fmt.Errorf("the settings of %s could not be written: %w", k.name, err)
	}
	return c.look(k, hub), nil
}

// Disconnect takes our entry out of a program's file again. What else has
// changed there since stays.
func (c Clients) Disconnect(id string) error {
	k, err := named(id)
	if err != nil {
		return err
	}
	file := resolved(k.file(c))
	if _, err := c.Book.PutBack(file); err != nil {
		return fmt.Errorf("the settings of %s could not be put back: %w", k.name, err)
	}
	if err := takeOut(file, k.format); err != nil { // it was not in the book
		return fmt.Errorf("the settings of %s could not be put back: %w", k.name, err)
	}
	return nil
}

func named(id string) (*kind, error) {
	var ids []string
	for i := range known {
		if known[i].id == id {
			return &known[i], nil
		}
		ids = append(ids, known[i].id)
	}
	return nil, fmt.Errorf("there is no program %q here; known are %s", id, strings.Join(ids, ", "))
}

// found tells whether the program is here: its folder, or its command.
func (c Clients) found(k *kind) bool {
	for _, dir := range k.signs(c) {
		if _, err := os.Stat(dir); err == nil {
			return true
		}
	}
	// Programs that install themselves for one person lie there, and a desktop's
	// PATH does not always have it.
	for _, dir := range append(filepath.SplitList(c.Env("PATH")), filepath.Join(c.Home, ".local", "bin")) {
		if k.command == "" || dir == "" {
			continue
		}
		if _, err := exec.LookPath(filepath.Join(dir, k.command)); err == nil {
			return true
		}
	}
	return false
}

// command is how a program starts the bridge to this computer.
func (c Clients) command(name string) (string, []string) {
	args := []string{"mcp", "--program", name}
	if c.Data != "" {
		args = append(args, "--data", c.Data)
	}
	return c.Exe, args
}

// Lines are for a program that is not known here: what most take. It comes over
// HTTP to a hub's address, with a key when that is not ""; without an address it
// starts the bridge.
func (c Clients) Lines(name, hub, key string) []string {
	var e entry
	switch {
	case hub == "":
		cmd, args := c.command(name)
		e = entry{{"command", cmd}, {"args", args}}
	case key == "":
		e = entry{{"type", "http"}, {"url", hub + "/mcp"}}
	default:
		e = entry{{"type", "http"}, {"url", hub + "/mcp"}, {"headers", map[string]string{"Authorization": "Bearer " + key}}}
	}
	return jsonFormat{"mcpServers"}.lines(e)
}

// entry is one server's settings, in order.
type entry []field

type field struct {
	name  string
	value any
}

// MarshalJSON keeps the order.
func (e entry) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range e {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// ours tells whether an entry of our name was written by this program, or would
// do the same: it starts the bridge, or leads to some hub's face.
func ours(e map[string]any) bool {
	if args, ok := e["args"].([]any); ok && len(args) > 1 && args[0] == "mcp" && args[1] == "--program" {
		return true
	}
	for _, name := range []string{"url", "httpUrl"} {
		if u, ok := e[name].(string); ok && strings.HasSuffix(u, "/mcp") {
			return true
		}
	}
	return false
}

// leads tells whether an entry is ours and goes to that hub, "" for the one
// inside: an older one may go to the hub that this computer was paired with.
func leads(e map[string]any, hub string) bool {
	if !ours(e) {
		return false
	}
	for _, name := range []string{"url", "httpUrl"} {
		if u, ok := e[name].(string); ok {
			return hub != "" && u == hub+"/mcp"
		}
	}
	return hub == ""
}

// errOther is an entry of our name that another program made.
const errOther = errByHand("There is an entry called " + serverName + " already that is not this program's, so the file is left as it is. Take that entry away, or put these lines there under another name.")

// resolved follows links, as far as there are files.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// format is how a program writes its file.
type format interface {
	name() string
	// lines are an entry as a person would put it into an empty file.
	lines(e entry) []string
	// entry is ours as it is there, nil when there is none.
	entry(data []byte) map[string]any
	// put sets our entry and leaves everything else as it is. The error is
	// errByHand where that is not safe.
	put(data []byte, e entry) ([]byte, error)
	// take removes it; empty is true when nothing but what put made is left.
	take(data []byte) (after []byte, empty bool, err error)
}

// formatNamed is the format that a change in the book names; nil for none.
func formatNamed(name string) format {
	for _, k := range known {
		if k.format.name() == name {
			return k.format
		}
	}
	return nil
}

// takeOut removes our entry from a file, if it is there and ours.
func takeOut(path string, f format) error {
	data, fi, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !ours(f.entry(data)) {
		return nil
	}
	after, _, err := f.take(data)
	if err != nil {
		return err
	}
	return replace(path, after, fi.Mode().Perm())
}

// putBackEntry undoes a change that added our entry to a file with entries of
// others: what they changed since stays.
func putBackEntry(c Change, contents []byte) (same bool, err error) {
	f := formatNamed(c.Entry)
	if f == nil || !ours(f.entry(contents)) {
		return f != nil, nil // it is gone already
	}
	after, empty, err := f.take(contents)
	if err != nil {
		return false, nil // somebody broke the file since; it is theirs
	}
	if empty && !c.Was {
		if err := os.Remove(c.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		sweep(c.Made)
		return true, nil
	}
	fi, err := os.Lstat(c.Path)
	if err != nil {
		return false, err
	}
	return true, replace(c.Path, after, fi.Mode().Perm())
}
