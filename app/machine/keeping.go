package machine

import (
	"context"
	"errors"

	"localpc/app/login"
	"localpc/app/snapshot"
)

// Keychain is where the tokens for hubs and the secret of root grants are kept:
// a login.Keychain or, where the person chose so, a login.Vault.
type Keychain interface {
	login.Keeper
	// Check tells whether something can be kept now; the error wraps
	// login.ErrNoKeychain.
	Check(ctx context.Context) error
	// Where says in a few words where things are kept: "in the keychain".
	Where() string
}

var (
	_ Keychain = login.Keychain{}
	_ Keychain = (*login.Vault)(nil)
)

// unkept says why secrets can't be kept or read, and what mends it.
func unkept(err error) (what, remedy string) {
	switch {
	case errors.Is(err, login.ErrLocked):
		return "The encrypted file of this computer's secrets is locked, as its passphrase was not given",
			"Quit, and start again with --passphrase-file FILE, or in a terminal, which asks for the passphrase."
	case errors.Is(err, login.ErrUnwritten):
		return "The encrypted file of this computer's secrets can't be written", "The disk may be full: make room, and try again."
	}
	return "This computer's keychain can't be used",
		"Unlock it, or install one such as gnome-keyring. Or keep secrets in an encrypted file: quit, run localpc secrets file, and start again."
}

// inMemory is the warning where the hub inside goes on without.
func inMemory(err error) string {
	what, remedy := unkept(err)
	return what + ", so this program signs in to the hub inside, and signs the record, with keys that last until it ends; your programs' keys stay good. " + remedy
}

// pairUnkept says why a sign-in was not made.
func pairUnkept(err error) sentence {
	what, remedy := unkept(err)
	return sentence(what + ", so a sign-in can't be kept. " + remedy + " Then pair again.")
}

// hubUnkept says why a sign-in that was made can't be used.
func hubUnkept(err error) string {
	what, remedy := unkept(err)
	said := what + ", so it can't sign in to its hub. " + remedy
	if errors.Is(err, login.ErrLocked) {
		return said
	}
	return said + " This computer keeps trying the hub."
}

// secretsAre says where secrets are.
func (m *Machine) secretsAre() string {
	if m.o.Unkept != nil && !errors.Is(m.o.Unkept, login.ErrLocked) {
		return "in memory, until this program ends"
	}
	return m.o.Keychain.Where()
}

// checkSecrets tries whether secrets can be kept.
func (m *Machine) checkSecrets(ctx context.Context) (snapshot.Reply, error) {
	if err := m.o.Keychain.Check(ctx); err != nil {
		m.log.Warn("Secrets can't be kept", "err", err)
		what, remedy := unkept(err)
		return snapshot.Reply{}, sentence(what + ". " + remedy)
	}
	return say("kept " + m.o.Keychain.Where()), nil
}
