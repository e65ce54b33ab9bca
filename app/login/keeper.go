package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Keeper is what keeps items: the Keychain, or a Vault in its place. The errors
// of all three wrap ErrNoKeychain where it can't be used now; Get's is
// ErrMissing where it works and has no such item. Deleting one that is not
// there is no error. Safe for concurrent use.
type Keeper interface {
	Get(ctx context.Context, item string) (string, error)
	Set(ctx context.Context, item, value string) error
	Delete(ctx context.Context, item string) error
}

var (
	_ Keeper = Keychain{}
	_ Keeper = (*Vault)(nil)
)

// Items of one machine.
const (
	recordKey = "record-key" // signs the record
	// RootGrantSecret signs the grants of folders.
	RootGrantSecret = "root-grant-secret"
	// ProgramKeys are the keys of programs that this computer keeps for them.
	ProgramKeys = "program-keys"
)

// TokenItem is the item that holds the token for a hub: "this", "autogpt", or
// its address.
func TokenItem(hub string) string { return "hub-token " + hub }

// Items are the names of all that a machine may keep that has been paired with
// these hubs: a keychain can't be asked for them.
func Items(hubs ...string) []string {
	items := []string{recordKey, RootGrantSecret, ProgramKeys}
	for _, hub := range hubs {
		if item := TokenItem(hub); hub != "" && !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return items
}

// Move takes items from one keeper to another, all of them or none. chosen is
// called once the other has them, and makes it the one that counts; where it
// fails, the other gets back what it had. From then on the first one's are
// leftovers: left names those that could not be deleted there.
func Move(ctx context.Context, from, to Keeper, items []string, chosen func() error) (left []string, err error) {
	ctx = context.WithoutCancel(ctx) // what is half done is undone, not left
	type item struct {
		name, value, before string
		had                 bool
	}
	var all []item
	for _, name := range items {
		value, err := from.Get(ctx, name)
		if errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read what is kept: %w", err)
		}
		before, err := to.Get(ctx, name)
		if err != nil && !errors.Is(err, ErrMissing) {
			return nil, fmt.Errorf("read what is kept there: %w", err)
		}
		all = append(all, item{name, value, before, err == nil})
	}
	done := 0
	for _, i := range all {
		done++
		if err = put(ctx, to, i.name, i.value); err != nil {
			break
		}
	}
	if err == nil {
		err = chosen()
	}
	if err != nil {
		for _, i := range all[:done] {
			var uerr error
			if i.had {
				uerr = to.Set(ctx, i.name, i.before)
			} else {
				uerr = to.Delete(ctx, i.name)
			}
			if uerr != nil {
				err = errors.Join(err, fmt.Errorf("undo: %w", uerr))
			}
		}
		return nil, err
	}
	for _, i := range all {
		if err := from.Delete(ctx, i.name); err != nil {
			left = append(left, i.name)
		}
	}
	return left, nil
}

// put keeps an item, and looks whether it is kept as it is.
func put(ctx context.Context, to Keeper, name, value string) error {
	if err := to.Set(ctx, name, value); err != nil {
		return fmt.Errorf("keep what is moved: %w", err)
	}
	got, err := to.Get(ctx, name)
	if err == nil && got != value {
		err = fmt.Errorf("%w: it gives something else than it was given", ErrNoKeychain)
	}
	return err
}
