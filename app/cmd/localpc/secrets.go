package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"localpc/app/control"
	"localpc/app/login"
	"localpc/app/machine"
	"localpc/app/settings"
)

func passphraseFlag(c *cli, f *flag.FlagSet) {
	f.StringVar(&c.passphraseFile, "passphrase-file", "", "the file that has the passphrase of the encrypted file of secrets")
}

func readFlags(c *cli, f *flag.FlagSet) {
	jsonFlag(c, f)
	passphraseFlag(c, f)
}

// secrets says where secrets are kept, or moves them.
func secrets(c *cli, args []string) error {
	to := ""
	if len(args) == 1 {
		to = args[0]
	}
	if len(args) > 1 || to != "" && to != settings.SecretsKeychain && to != settings.SecretsFile {
		return usageError("secrets takes nothing, or keychain, or file")
	}
	if err := c.makeData(); err != nil {
		return err
	}
	if to != "" {
		// The program that runs renews its tokens: moved beside it, they would
		// be old ones.
		release, err := control.Lock(c.paths.Lock())
		if errors.Is(err, control.ErrRunning) {
			return errors.New("the program is running; end it first, with localpc quit")
		}
		if err != nil {
			return err
		}
		defer release()
	}
	set, err := settings.Load(c.paths)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch now := set.Get().Secrets; {
	case to == "" || to == now:
		return c.saySecrets(set)
	case to == settings.SecretsKeychain:
		return toKeychain(ctx, c, set)
	}
	passphrase, err := c.passphrase(ctx)
	if err != nil {
		return err
	}
	_, err = useVault(ctx, c, set, passphrase)
	return err
}

func (c *cli) saySecrets(set *settings.Store) error {
	words := "Secrets are kept in the keychain."
	if set.Get().Secrets == settings.SecretsFile {
		words = "Secrets are kept in an encrypted file, " + c.paths.Secrets() + ". Each start needs its passphrase: --passphrase-file FILE, or a terminal to type it."
	}
	_, err := fmt.Fprintln(c.out, words)
	return err
}

// openSecrets opens what keeps this computer's secrets, for a program that
// begins to run with the lock. A passphrase is asked where somebody can type
// it; without one the file stays locked.
func openSecrets(ctx context.Context, c *cli, set *settings.Store) (machine.Keychain, error) {
	if c.passphraseFile != "" {
		passphrase, err := login.ReadPassphrase(c.passphraseFile)
		if err != nil {
			return nil, err
		}
		// What this program starts need not know where it came from.
		os.Unsetenv("CREDENTIALS_DIRECTORY")
		return kept(useVault(ctx, c, set, passphrase))
	}
	s := set.Get()
	if s.Secrets == settings.SecretsFile {
		return unlock(ctx, c, set)
	}
	k := login.Keychain{Machine: s.MachineID}
	if !canType() || hasDisplay() || s.Hub == settings.HubThis || readable(ctx, k, login.Items()) == nil {
		return k, nil
	}
	fmt.Fprintf(c.out, "No keychain can be used here. A sign-in at a hub can be kept in an encrypted file instead,\n%s. Type a passphrase for it, or press Enter to go on without.\n", c.paths.Secrets())
	passphrase, err := newPassphrase(ctx, c.out, "Passphrase (it is asked at each start, and can't be recovered): ")
	if err != nil {
		return nil, err
	}
	if passphrase == "" {
		return k, nil
	}
	return kept(useVault(ctx, c, set, passphrase))
}

func kept(v *login.Vault, err error) (machine.Keychain, error) {
	if err != nil {
		return nil, err // v is a nil pointer, which is no nil interface
	}
	return v, nil
}

// unlock asks for the passphrase until it is right, or the person goes on
// without.
func unlock(ctx context.Context, c *cli, set *settings.Store) (machine.Keychain, error) {
	path := c.paths.Secrets()
	for canType() {
		ask := func() (string, error) { return typed(ctx, c.out, "Passphrase of "+path+" (Enter: go on without): ") }
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			ask = func() (string, error) {
				return newPassphrase(ctx, c.out, path+" is missing. Passphrase for a new one (Enter: go on without): ")
			}
		}
		passphrase, err := ask()
		if err != nil {
			return nil, err
		}
		if passphrase == "" {
			break
		}
		k, err := kept(useVault(ctx, c, set, passphrase))
		if !errors.Is(err, login.ErrPassphrase) {
			return k, err
		}
		fmt.Fprintln(c.out, err)
	}
	fmt.Fprintln(c.out, path+" is locked, as its passphrase was not given: there is no signing in to a hub of somebody's. Start with --passphrase-file FILE, or in a terminal.")
	return login.LockedVault(path), nil
}

// readSecrets is what keeps this computer's secrets, for a command beside the
// running program.
func readSecrets(c *cli, set *settings.Store) (login.Keeper, error) {
	if set.Get().Secrets != settings.SecretsFile {
		return login.Keychain{Machine: set.Get().MachineID}, nil
	}
	if c.passphraseFile == "" {
		return login.LockedVault(c.paths.Secrets()), nil
	}
	passphrase, err := login.ReadPassphrase(c.passphraseFile)
	if err != nil {
		return nil, err
	}
	v, err := login.OpenVault(c.paths.Secrets(), passphrase)
	if err != nil {
		return nil, vaultProblem(c, err)
	}
	return v, nil
}

func vaultProblem(c *cli, err error) error {
	if errors.Is(err, login.ErrPassphrase) {
		return fmt.Errorf("%w: it does not open %s. Nothing was changed", err, c.paths.Secrets())
	}
	return err
}

// useVault opens the encrypted file, or makes it, and has it keep what the
// keychain kept before, if that was where secrets were.
func useVault(ctx context.Context, c *cli, set *settings.Store, passphrase string) (*login.Vault, error) {
	path, s := c.paths.Secrets(), set.Get()
	v, err := login.OpenVault(path, passphrase)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		v, err = login.MakeVault(path, passphrase)
	}
	if err != nil {
		return nil, vaultProblem(c, err)
	}
	if s.Secrets == settings.SecretsFile {
		if made {
			fmt.Fprintln(c.out, path+" was missing, so a new one was made. Pair again where this computer was paired.")
		}
		return v, nil
	}
	k := login.Keychain{Machine: s.MachineID}
	items := login.Items(settings.HubThis, settings.HubAutoGPT, s.Hub)
	if err := readable(ctx, k, items); err != nil {
		// What it has that is worth something is a sign-in.
		if !errors.Is(err, login.ErrAbsent) && s.Hub != "" && s.Hub != settings.HubThis {
			if made {
				os.Remove(path)
			}
			return nil, fmt.Errorf("the keychain can't be read, and may have the sign-in at %s: %w. Unlock it, or unpair first; nothing was changed", s.Hub, err)
		}
		items = nil
	}
	left, err := login.Move(ctx, k, v, items, func() error {
		return set.Change(func(s *settings.Settings) { s.Secrets = settings.SecretsFile })
	})
	if err != nil {
		if made {
			os.Remove(path)
		}
		return nil, fmt.Errorf("secrets stay in the keychain: %w", err)
	}
	if len(left) > 0 {
		fmt.Fprintf(c.out, "The keychain still has %d items of this computer, which nobody needs any more.\n", len(left))
	}
	return v, c.saySecrets(set)
}

func readable(ctx context.Context, k login.Keeper, items []string) error {
	for _, item := range items {
		if _, err := k.Get(ctx, item); err != nil && !errors.Is(err, login.ErrMissing) {
			return err
		}
	}
	return nil
}

// toKeychain moves what the encrypted file has.
func toKeychain(ctx context.Context, c *cli, set *settings.Store) error {
	path := c.paths.Secrets()
	chosen := func() error {
		return set.Change(func(s *settings.Settings) { s.Secrets = settings.SecretsKeychain })
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(c.out, path+" is missing, so nothing was moved.")
		return errors.Join(chosen(), c.saySecrets(set))
	}
	k := login.Keychain{Machine: set.Get().MachineID}
	if err := k.Check(ctx); err != nil { // before anything is typed
		return fmt.Errorf("secrets stay in %s: %w", path, err)
	}
	passphrase, err := c.passphrase(ctx)
	if err != nil {
		return err
	}
	v, err := login.OpenVault(path, passphrase)
	if err != nil {
		return vaultProblem(c, err)
	}
	if _, err := login.Move(ctx, v, k, v.Names(), chosen); err != nil {
		return fmt.Errorf("secrets stay in %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		fmt.Fprintf(c.out, "%s could not be removed, and is not needed any more: %v\n", path, err)
	}
	return c.saySecrets(set)
}
