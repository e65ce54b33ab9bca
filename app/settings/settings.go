// Package settings is what a person can set and where things are kept: load,
// validate, save. It takes no part in a request's seven steps; it says under
// which terms they are taken.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/google/uuid"
)

// Settings is the readable file settings.toml.
type Settings struct {
	// MachineID is made at the first start and stays.
	MachineID string `toml:"machine_id"`
	// Name is how this computer is called in cards and on hubs.
	Name string `toml:"name"`
	// Hub is "" (not paired), "this" (the hub inside this program), "autogpt"
	// (the platform that AutoGPT names), or the address of an own hub.
	Hub string `toml:"hub"`
	// AutoGPT is where the AutoGPT platform is, and how to sign in there.
	AutoGPT AutoGPT `toml:"autogpt"`
	// EmbeddedHub is where the hub inside listens, on loopback.
	EmbeddedHub string `toml:"embedded_hub"`
	// Folder is offered first on a session card; "" means a new one below
	// "Local PC" in the home.
	Folder string `toml:"folder"`
	// CAFile is a PEM file with authorities that hubs and proxies are trusted
	// by, besides the system's; "" for none.
	CAFile string `toml:"ca_file"`
	// KeepGB is how many gigabytes of old versions are kept at most, for a week;
	// 0 means UsualKeepGB, -1 that none are.
	KeepGB int `toml:"keep_gb"`
	// Secrets is where tokens and keys are kept: "keychain", or "file" for one
	// encrypted with a passphrase. "localpc secrets" moves them.
	Secrets string `toml:"secrets"`
	// Capabilities are what may be asked for at all.
	Capabilities Capabilities `toml:"capabilities"`
	// Rates are how many requests a minute a session may make.
	Rates Rates `toml:"rates"`
	// Computer is what is set for screen, mouse and keyboard.
	Computer Computer `toml:"computer"`
}

// The values of Settings.Secrets.
const (
	SecretsKeychain = "keychain"
	SecretsFile     = "file"
)

// DefaultEmbeddedHub is where the embedded hub listens.
const DefaultEmbeddedHub = "127.0.0.1:4417"

// HubThis is the value of Settings.Hub for the embedded hub.
const HubThis = "this"

// Paths are the places of this program's state, all below one directory.
type Paths struct{ Data string }

func (p Paths) File() string     { return filepath.Join(p.Data, "settings.toml") }
func (p Paths) Hub() string      { return filepath.Join(p.Data, "hub") }
func (p Paths) Spool() string    { return filepath.Join(p.Data, "spool") }
func (p Paths) Sessions() string { return filepath.Join(p.Data, "sessions") }
func (p Paths) Versions() string { return filepath.Join(p.Data, "versions") }
func (p Paths) Lock() string     { return filepath.Join(p.Data, "lock") }
func (p Paths) Secrets() string  { return filepath.Join(p.Data, "secrets.age") }
func (p Paths) Display() string  { return filepath.Join(p.Data, "display.json") }
func (p Paths) LogFile() string  { return filepath.Join(p.Data, "localpc.log") }

// Socket is the control socket. A path that is too long for a Unix socket
// (108 bytes) is refused by Make.
func (p Paths) Socket() string { return filepath.Join(p.Data, "control.sock") }

// DefaultData is ~/.local/share/localpc, or what XDG_DATA_HOME says.
func DefaultData() (string, error) {
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "localpc"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("this user has no home directory; name a place with --data DIR")
	}
	return filepath.Join(home, ".local", "share", "localpc"), nil
}

// Make makes the directories, for the person only.
func (p Paths) Make() error {
	if !filepath.IsAbs(p.Data) {
		return fmt.Errorf("the data directory %q must be an absolute path", p.Data)
	}
	if len(p.Socket()) > 100 {
		return fmt.Errorf("the data directory's path is too long for a control socket (%d bytes, at most 87); name a shorter one with --data", len(p.Data))
	}
	if fi, err := os.Stat(p.Data); err == nil && fi.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%s is a directory that everybody may write to; name one of your own with --data", p.Data)
	}
	for _, d := range []string{p.Data, p.Hub(), p.Spool(), p.Sessions()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("make %s: %w", d, err)
		}
	}
	// An earlier umask does not leave it open to others.
	if err := os.Chmod(p.Data, 0o700); err != nil {
		return fmt.Errorf("protect %s: %w", p.Data, err)
	}
	return nil
}

// Store is the settings and their file. Safe for concurrent use.
type Store struct {
	path string
	mu   sync.Mutex
	s    Settings // guarded by mu
}

// Load reads the file, or makes it with what a first start needs.
func Load(p Paths) (*Store, error) {
	st := &Store{path: p.File(), s: Settings{Computer: usualComputer}}
	data, err := os.ReadFile(st.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return st, st.Change(func(s *Settings) { s.fill() })
	case err != nil:
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	if err := toml.Unmarshal(data, &st.s); err != nil {
		return nil, fmt.Errorf("the settings in %s can't be read: %w; mend the file, or move it away to start anew", st.path, err)
	}
	filled := st.s.fill()
	if err := st.s.validate(); err != nil {
		return nil, fmt.Errorf("the settings in %s: %w", st.path, err)
	}
	if filled {
		return st, st.Change(func(*Settings) {})
	}
	return st, nil
}

// fill gives what is left out its value; it tells whether there was any.
func (s *Settings) fill() bool {
	before := *s
	if s.MachineID == "" {
		s.MachineID = uuid.NewString()
	}
	if s.Name == "" {
		if s.Name, _ = os.Hostname(); s.Name == "" {
			s.Name = "This computer"
		}
	}
	if s.EmbeddedHub == "" {
		s.EmbeddedHub = DefaultEmbeddedHub
	}
	if s.Secrets == "" {
		s.Secrets = SecretsKeychain
	}
	s.AutoGPT = s.AutoGPT.Fill()
	s.Capabilities, s.Rates, s.KeepGB, s.Computer = s.Capabilities.filled(), s.Rates.filled(), filledKeep(s.KeepGB), s.Computer.filled()
	return *s != before
}

// Get returns the settings as they are now.
func (st *Store) Get() Settings {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.s
}

// Change changes and saves them; nothing changes when that fails.
func (st *Store) Change(fn func(*Settings)) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.s
	fn(&s)
	s.Capabilities, s.Rates, s.KeepGB, s.Computer = s.Capabilities.filled(), s.Rates.filled(), filledKeep(s.KeepGB), s.Computer.filled()
	if err := s.validate(); err != nil {
		return err
	}
	data, err := toml.Marshal(s)
	if err != nil {
		return fmt.Errorf("save the settings: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(st.path), ".settings-*")
	if err != nil {
		return fmt.Errorf("save the settings: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), st.path)
	}
	if err != nil {
		return fmt.Errorf("save the settings: %w", err)
	}
	st.s = s
	return nil
}

func (s Settings) validate() error {
	if _, err := uuid.Parse(s.MachineID); err != nil || len(s.MachineID) != 36 {
		return errors.New("machine_id must be a UUID; remove the line to get a new one")
	}
	if n := utf8.RuneCountInString(s.Name); n < 1 || n > 128 {
		return errors.New("name must have 1 to 128 characters")
	}
	if s.Hub != "" && s.Hub != HubThis && s.Hub != HubAutoGPT && !strings.HasPrefix(s.Hub, "http://") && !strings.HasPrefix(s.Hub, "https://") {
		return errors.New(`hub must be empty, "this", "autogpt", or an address that begins with https://`)
	}
	if s.Folder != "" && !filepath.IsAbs(s.Folder) {
		return errors.New("folder must be an absolute path")
	}
	if s.CAFile != "" && !filepath.IsAbs(s.CAFile) {
		return errors.New("ca_file must be an absolute path")
	}
	if s.Secrets != SecretsKeychain && s.Secrets != SecretsFile {
		return errors.New(`secrets must be "keychain" or "file"`)
	}
	if err := errors.Join(s.AutoGPT.Check(), s.Capabilities.check(), s.Rates.check(), checkKeep(s.KeepGB), s.Computer.check()); err != nil {
		return err
	}
	return CheckLoopback(s.EmbeddedHub)
}

// CheckLoopback refuses an address that others could reach: the hub inside
// serves this computer only.
func CheckLoopback(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address like %s", addr, DefaultEmbeddedHub)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("the hub inside listens on this computer only: %q must be an address like %s", addr, DefaultEmbeddedHub)
	}
	return nil
}
