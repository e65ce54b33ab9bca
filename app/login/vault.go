package login

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"filippo.io/age"
)

// ErrPassphrase means that a vault's passphrase is another one.
var ErrPassphrase = errors.New("the passphrase is wrong")

// ErrLocked means that a vault was not opened: nobody gave its passphrase.
var ErrLocked = errors.New("the file of secrets is locked")

// ErrUnwritten means that a vault could not write its file.
var ErrUnwritten = errors.New("the file of secrets could not be written")

// DamagedError is a vault's file that can't be read whatever the passphrase is.
type DamagedError struct {
	Path  string
	Cause error
}

func (e *DamagedError) Error() string {
	return e.Path + " is damaged: " + e.Cause.Error() + ". Put a copy of it in its place that is whole; or move it away, start again with a passphrase, and pair again"
}
func (e *DamagedError) Unwrap() error { return e.Cause }

const (
	// vaultVersion 1: a first line "localpc secrets 1 SUM", SUM being SHA-256
	// of what follows, in hex; then two age files in PEM. The first holds the
	// age identity that opens the second, and is opened with the passphrase;
	// the second holds the items, a JSON object. So the slow way from the
	// passphrase is gone once, and not at each change; the sum tells a damaged
	// file from a wrong passphrase.
	vaultVersion = 1
	vaultFirst   = "localpc secrets %d %x"
	vaultPEM     = "AGE ENCRYPTED FILE"

	maxVault      = 1 << 20 // bytes of its file
	minPassphrase = 8       // characters of a new one
	maxWorkFactor = 18      // 256 MiB and a second or so; age's own is no more
)

// workFactor of a new vault, as a power of two: 128 MiB of memory, for half a
// second at the start.
var workFactor = 17

// Vault keeps items in one encrypted file, for computers without a keychain. A
// process that holds the data directory's lock has it alone. The passphrase is
// not kept, in memory either. Safe for concurrent use.
type Vault struct {
	path string

	mu    sync.Mutex
	id    *age.X25519Identity // nil: locked
	key   []byte              // the first age file, in PEM; guarded by mu
	items map[string]string   // guarded by mu
}

// LockedVault is a vault that nobody has opened: every call says so.
func LockedVault(path string) *Vault { return &Vault{path: path} }

// MakeVault makes an empty vault with a new file; a file that is there already
// is refused with fs.ErrExist.
func MakeVault(path, passphrase string) (*Vault, error) {
	if err := CheckPassphrase(passphrase); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("make %s: %w", path, fs.ErrExist)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	r, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	r.SetWorkFactor(workFactor)
	key, err := seal(r, []byte(id.String()))
	debug.FreeOSMemory() // scrypt's
	if err != nil {
		return nil, err
	}
	v := &Vault{path: path, id: id, key: key}
	return v, v.change(func(map[string]string) {})
}

// OpenVault opens one. The error is ErrPassphrase, a *DamagedError, or the file
// system's (fs.ErrNotExist where there is none); the file is as it was.
func OpenVault(path, passphrase string) (*Vault, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxVault+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	v := &Vault{path: path}
	err = v.open(data, passphrase)
	debug.FreeOSMemory() // scrypt's
	switch {
	case errors.Is(err, ErrPassphrase):
		return nil, err
	case err != nil:
		return nil, &DamagedError{path, err}
	}
	return v, nil
}

func (v *Vault) open(data []byte, passphrase string) error {
	if len(data) > maxVault {
		return errors.New("it is too long")
	}
	first, body, _ := bytes.Cut(data, []byte("\n"))
	if want := fmt.Sprintf(vaultFirst, vaultVersion, sha256.Sum256(body)); string(first) != want {
		var version int
		if _, err := fmt.Sscanf(string(first), "localpc secrets %d ", &version); err == nil && version > vaultVersion {
			return errors.New("a newer version of this program wrote it")
		}
		return errors.New("it is not as this program wrote it")
	}
	key, rest := pem.Decode(body)
	items, _ := pem.Decode(rest)
	if key == nil || items == nil || key.Type != vaultPEM || items.Type != vaultPEM {
		return errors.New("a part of it is missing")
	}
	pass, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return ErrPassphrase // an empty one
	}
	pass.SetMaxWorkFactor(maxWorkFactor)
	secret, err := unseal(pass, key.Bytes)
	if errors.Is(err, age.ErrIncorrectIdentity) {
		return ErrPassphrase
	}
	if err != nil {
		return err
	}
	if v.id, err = age.ParseX25519Identity(string(secret)); err != nil {
		return err
	}
	v.key = pem.EncodeToMemory(key)
	text, err := unseal(v.id, items.Bytes)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &v.items)
}

// seal encrypts to one recipient, in PEM.
func seal(r age.Recipient, text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := age.Encrypt(&b, r)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: vaultPEM, Bytes: b.Bytes()}), nil
}

func unseal(id age.Identity, file []byte) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(file), id)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Where says in a few words where items are.
func (v *Vault) Where() string {
	if v.id == nil {
		return "in an encrypted file, which is locked"
	}
	return "in an encrypted file"
}

// Names are the items that it has.
func (v *Vault) Names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var names []string
	for name := range v.items {
		names = append(names, name)
	}
	return names
}

func (v *Vault) usable(ctx context.Context) error {
	if v.id == nil {
		return fmt.Errorf("%w: %w", ErrNoKeychain, ErrLocked)
	}
	return ctx.Err()
}

// Get returns an item, ErrMissing, or an error that wraps ErrNoKeychain.
func (v *Vault) Get(ctx context.Context, item string) (string, error) {
	if err := v.usable(ctx); err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	value, ok := v.items[item]
	if !ok {
		return "", ErrMissing
	}
	return value, nil
}

// Set stores an item: when it returns, it is on the disk. On an error all is
// as it was.
func (v *Vault) Set(ctx context.Context, item, value string) error {
	if err := v.usable(ctx); err != nil {
		return err
	}
	return v.change(func(items map[string]string) { items[item] = value })
}

// Delete removes an item; one that is not there is no error.
func (v *Vault) Delete(ctx context.Context, item string) error {
	if err := v.usable(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	_, ok := v.items[item]
	v.mu.Unlock()
	if !ok {
		return nil
	}
	return v.change(func(items map[string]string) { delete(items, item) })
}

// Check tells whether the file takes something: nil, or an error that wraps
// ErrNoKeychain.
func (v *Vault) Check(ctx context.Context) error {
	if err := v.usable(ctx); err != nil {
		return err
	}
	return v.change(func(map[string]string) {})
}

// change writes the file anew with what fn makes of the items.
func (v *Vault) change(fn func(map[string]string)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	items := maps.Clone(v.items)
	if items == nil {
		items = map[string]string{}
	}
	fn(items)
	text, err := json.Marshal(items)
	if err != nil {
		return err
	}
	sealed, err := seal(v.id.Recipient(), text)
	if err != nil {
		return err
	}
	body := append(bytes.Clone(v.key), sealed...)
	data := append(fmt.Appendf(nil, vaultFirst+"\n", vaultVersion, sha256.Sum256(body)), body...)
	if len(data) > maxVault {
		return fmt.Errorf("%w: %w: it would be too long", ErrNoKeychain, ErrUnwritten)
	}
	if err := replace(v.path, data); err != nil {
		return fmt.Errorf("%w: %w: %w", ErrNoKeychain, ErrUnwritten, err)
	}
	v.items = items
	return nil
}

// replace writes a file whole: after a power cut there is the old one or the
// new one. Its passing name is always the same, so that none are left over.
func replace(path string, data []byte) error {
	passing := path + ".new"
	if err := os.Remove(passing); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(passing, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(passing, path)
	}
	if err != nil {
		os.Remove(passing)
		return err
	}
	// The new name is there for every reader; that it outlives a power cut is
	// up to the file system where it can't be asked for this.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		dir.Close()
	}
	return nil
}
