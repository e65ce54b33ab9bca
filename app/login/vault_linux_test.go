package login_test

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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"localpc/app/login"
)

const passphrase = "korrekt pferd 世界"

func newVault(t *testing.T) (*login.Vault, string) {
	t.Helper()
	login.QuickVaults()
	path := filepath.Join(t.TempDir(), "secrets.age")
	v, err := login.MakeVault(path, passphrase)
	must(t, err)
	return v, path
}

func reopened(t *testing.T, path string) *login.Vault {
	t.Helper()
	v, err := login.OpenVault(path, passphrase)
	must(t, err)
	return v
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

func TestVault(t *testing.T) {
	v, path := newVault(t)
	ctx := t.Context()
	item := login.TokenItem("https://hub.example.org/a b")
	if _, err := v.Get(ctx, item); !errors.Is(err, login.ErrMissing) {
		t.Errorf("what is not there: %v", err)
	}
	must(t, v.Delete(ctx, item))
	for _, secret := range []string{"first", "second, in its place", "Ωß世界\n\x00", strings.Repeat("x", 4096)} {
		must(t, v.Set(ctx, item, secret))
		for _, now := range []*login.Vault{v, reopened(t, path)} {
			if got, err := now.Get(ctx, item); err != nil || got != secret {
				t.Errorf("%q, %v, want %q", got, err, secret)
			}
		}
		if bytes.Contains(read(t, path), []byte(secret)) {
			t.Errorf("%q can be read in the file", secret)
		}
	}
	must(t, v.Check(ctx))
	must(t, v.Delete(ctx, item))
	if _, err := reopened(t, path).Get(ctx, item); !errors.Is(err, login.ErrMissing) {
		t.Errorf("what was deleted: %v", err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", fi.Mode(), err)
	}
	if _, err := login.MakeVault(path, passphrase); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made over one that is there: %v", err)
	}
	if _, err := login.MakeVault(path+"2", "1234567"); err == nil {
		t.Error("a passphrase of seven characters was taken")
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

// A wrong passphrase is told as such, and changes nothing.
func TestVaultWrongPassphrase(t *testing.T) {
	v, path := newVault(t)
	must(t, v.Set(t.Context(), "x", "secret"))
	before := read(t, path)
	for _, wrong := range []string{"", "another one", passphrase + " ", strings.ToUpper(passphrase)} {
		if _, err := login.OpenVault(path, wrong); !errors.Is(err, login.ErrPassphrase) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file is another one now")
	}
}

// A damaged file is named, with what to do, and is not taken for a wrong
// passphrase.
func TestVaultDamaged(t *testing.T) {
	v, path := newVault(t)
	must(t, v.Set(t.Context(), "x", "secret"))
	good := read(t, path)
	damaged := func(what string, data []byte) {
		t.Helper()
		must(t, os.WriteFile(path, data, 0o600))
		_, err := login.OpenVault(path, passphrase)
		var de *login.DamagedError
		if !errors.As(err, &de) || de.Path != path || !strings.Contains(err.Error(), path+" is damaged") || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := 0; i < len(good); i += 7 {
		data := bytes.Clone(good)
		data[i] ^= 0x20
		damaged(fmt.Sprintf("byte %d", i), data)
		damaged(fmt.Sprintf("%d bytes of it", i), good[:i])
	}
	damaged("zeros", make([]byte, len(good)))
	damaged("too long", bytes.Repeat(good, 2<<20/len(good)))
	_, body, _ := bytes.Cut(good, []byte("\n"))
	summed := func(version int, body []byte) []byte {
		return append(fmt.Appendf(nil, "localpc secrets %d %x\n", version, sha256.Sum256(body)), body...)
	}
	damaged("of a later version", summed(2, body))
	key, rest := pem.Decode(body)
	items, _ := pem.Decode(rest)
	enc := pem.EncodeToMemory
	damaged("without items", summed(1, enc(key)))
	other, otherPath := newVault(t)
	must(t, other.Set(t.Context(), "x", "another's"))
	_, otherBody, _ := bytes.Cut(read(t, otherPath), []byte("\n"))
	_, rest = pem.Decode(otherBody)
	damaged("another's items", summed(1, append(enc(key), rest...)))
	// One that asks for a day of work and all of the memory is refused at once.
	greedy := bytes.Replace(key.Bytes, []byte(" 4\n"), []byte(" 30\n"), 1)
	if bytes.Equal(greedy, key.Bytes) {
		t.Fatal("the work factor is not where it was")
	}
	began := time.Now()
	damaged("greedy", summed(1, append(enc(&pem.Block{Type: key.Type, Bytes: greedy}), enc(items)...)))
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the greedy one took %s", took)
	}
	must(t, os.WriteFile(path, good, 0o600))
	reopened(t, path)
}

// The file's parts are files of age as any program reads them.
func TestVaultIsAge(t *testing.T) {
	v, path := newVault(t)
	must(t, v.Set(t.Context(), "x", "secret"))
	_, body, _ := bytes.Cut(read(t, path), []byte("\n"))
	key, rest := pem.Decode(body)
	items, rest := pem.Decode(rest)
	if len(rest) != 0 {
		t.Errorf("%d bytes more", len(rest))
	}
	open := func(b *pem.Block, id age.Identity) string {
		r, err := age.Decrypt(bytes.NewReader(b.Bytes), id)
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, err)
		return string(text)
	}
	pass, err := age.NewScryptIdentity(passphrase)
	must(t, err)
	id, err := age.ParseX25519Identity(open(key, pass))
	must(t, err)
	got := map[string]string{}
	must(t, json.Unmarshal([]byte(open(items, id)), &got))
	if len(got) != 1 || got["x"] != "secret" {
		t.Errorf("%v", got)
	}
}

// A new vault is made with as much work as is asked of passphrases today.
func TestVaultsWork(t *testing.T) {
	if got := login.UsualWorkFactor; got != 17 {
		t.Errorf("2^%d", got)
	}
}

func TestLockedVault(t *testing.T) {
	v, path := newVault(t)
	must(t, v.Set(t.Context(), "x", "secret"))
	before := read(t, path)
	noKeeper(t, login.LockedVault(path), time.Second)
	if err := login.LockedVault(path).Check(t.Context()); !errors.Is(err, login.ErrNoKeychain) || !errors.Is(err, login.ErrLocked) {
		t.Errorf("%v", err)
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file is another one now")
	}
}

// Where the file can't be written, the vault says so and has what it had.
func TestVaultThatCannotBeWritten(t *testing.T) {
	v, path := newVault(t)
	ctx := t.Context()
	must(t, v.Set(ctx, "x", "before"))
	must(t, os.MkdirAll(filepath.Join(path+".new", "in the way"), 0o700))
	for _, err := range []error{v.Set(ctx, "x", "after"), v.Set(ctx, "y", "new"), v.Delete(ctx, "x"), v.Check(ctx)} {
		if !errors.Is(err, login.ErrNoKeychain) || !errors.Is(err, login.ErrUnwritten) {
			t.Errorf("%v", err)
		}
	}
	must(t, os.RemoveAll(path+".new"))
	for _, now := range []*login.Vault{v, reopened(t, path)} {
		if got, err := now.Get(ctx, "x"); err != nil || got != "before" {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := v.Set(ctx, "x", strings.Repeat("x", 1<<20)); !errors.Is(err, login.ErrUnwritten) {
		t.Errorf("an item without bound: %v", err)
	}
	must(t, v.Set(ctx, "x", "after"))
}

func TestVaultByManyAtOnce(t *testing.T) {
	v, path := newVault(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			item := fmt.Sprint(i)
			for n := range 10 {
				want := fmt.Sprint(n)
				if err := v.Set(context.Background(), item, want); err != nil {
					t.Error(err)
				}
				if got, err := v.Get(context.Background(), item); err != nil || got != want {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	names := reopened(t, path).Names()
	slices.Sort(names)
	if strings.Join(names, "") != "01234567" {
		t.Errorf("%v", names)
	}
}
