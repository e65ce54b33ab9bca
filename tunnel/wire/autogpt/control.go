package autogpt

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// DirectoryList browses folders: with nothing set it begins a browse and lists
// the roots.
type DirectoryList struct {
	BrowseID     *string `json:"browse_id,omitempty"`
	DirectoryRef *string `json:"directory_ref,omitempty"` // nil exactly when BrowseID is
	Cursor       *string `json:"cursor,omitempty"`        // of that directory
}

func (d *DirectoryList) Validate() error {
	if (d.BrowseID == nil) != (d.DirectoryRef == nil) || d.Cursor != nil && d.BrowseID == nil {
		return errors.New("browse_id and directory_ref go together, and cursor needs both")
	}
	return errors.Join(checkRef("browse_id", d.BrowseID), checkRef("directory_ref", d.DirectoryRef), checkRef("cursor", d.Cursor))
}

// Directory is one page of folders.
type Directory struct {
	BrowseID   string             `json:"browse_id" need:"yes"`
	Current    *DirectoryRef      `json:"current"` // nil at the roots
	ParentRef  *string            `json:"parent_ref"`
	Entries    List[DirectoryRef] `json:"entries" need:"yes"`
	NextCursor *string            `json:"next_cursor"`
	Truncated  bool               `json:"truncated"`
	ExpiresAt  float64            `json:"expires_at" need:"yes"` // Unix seconds of the machine's clock
}

// DirectoryRef names one folder for the length of a browse.
type DirectoryRef struct {
	Ref  string `json:"directory_ref"`
	Name string `json:"name"`
	Path string `json:"path"`
}

func (d *Directory) Validate() error {
	if len(d.Entries) > MaxPage {
		return fmt.Errorf("entries has %d, at most %d are allowed", len(d.Entries), MaxPage)
	}
	for i := range d.Entries {
		if err := d.Entries[i].check(); err != nil {
			return err
		}
	}
	if d.Current != nil {
		if err := d.Current.check(); err != nil {
			return err
		}
	}
	return errors.Join(checkRef("browse_id", &d.BrowseID), checkRef("parent_ref", d.ParentRef), checkRef("next_cursor", d.NextCursor))
}

func (d *DirectoryRef) check() error {
	return errors.Join(checkRef("directory_ref", &d.Ref), checkLength("name", d.Name, MaxName), checkLength("path", d.Path, MaxPath))
}

// Attach binds a chat to a folder of a browse.
type Attach struct {
	SessionID    string `json:"session_id" need:"yes"`
	BrowseID     string `json:"browse_id" need:"yes"`
	DirectoryRef string `json:"directory_ref" need:"yes"`
	// ExpectedConnection is for the hub's own books; a machine ignores it.
	ExpectedConnection *string `json:"expected_connection_id,omitempty"`
}

func (a *Attach) Validate() error {
	return errors.Join(checkSession(a.SessionID), checkRef("browse_id", &a.BrowseID), checkRef("directory_ref", &a.DirectoryRef),
		checkRef("expected_connection_id", a.ExpectedConnection))
}

// Binding is a chat bound to a folder: SESSION_ATTACHED and SESSION_RESTORED.
type Binding struct {
	SessionID   string `json:"session_id" need:"yes"`
	AllowedRoot string `json:"allowed_root" need:"yes"` // canonical
	Fingerprint string `json:"fingerprint" need:"yes"`  // 64 lower-case hex digits
	Revision    int64  `json:"revision" need:"yes"`     // from 1
	RootGrant   string `json:"root_grant" need:"yes"`   // minted and checked by the machine alone
}

func (b *Binding) Validate() error {
	return errors.Join(b.Activated().Validate(), checkLength("root_grant", b.RootGrant, MaxGrant))
}

// Activated is b as the reply to ACTIVATE_SESSION.
func (b *Binding) Activated() *Activated {
	return &Activated{SessionID: b.SessionID, AllowedRoot: b.AllowedRoot, Fingerprint: b.Fingerprint, Revision: b.Revision}
}

// Activate starts a bound chat's data connection.
type Activate struct {
	SessionID string `json:"session_id" need:"yes"`
	Revision  int64  `json:"revision" need:"yes"`
}

func (a *Activate) Validate() error {
	return errors.Join(checkSession(a.SessionID), checkRevision(a.Revision))
}

// Activated is SESSION_ACTIVATED.
type Activated struct {
	SessionID   string `json:"session_id" need:"yes"`
	AllowedRoot string `json:"allowed_root" need:"yes"`
	Fingerprint string `json:"fingerprint" need:"yes"`
	Revision    int64  `json:"revision" need:"yes"`
}

func (a *Activated) Validate() error {
	if b, err := hex.DecodeString(a.Fingerprint); err != nil || len(b) != 32 || strings.ToLower(a.Fingerprint) != a.Fingerprint {
		return errors.New("fingerprint must be 64 lower-case hex digits")
	}
	return errors.Join(checkSession(a.SessionID), checkLength("allowed_root", a.AllowedRoot, MaxPath), checkRevision(a.Revision))
}

// Restore gives a binding back to a machine that forgot it, and starts it.
type Restore struct {
	SessionID string `json:"session_id" need:"yes"`
	RootGrant string `json:"root_grant" need:"yes"`
}

func (r *Restore) Validate() error {
	return errors.Join(checkSession(r.SessionID), checkLength("root_grant", r.RootGrant, MaxGrant))
}

// Detach ends a chat's binding; an id that is not bound is no error.
type Detach struct {
	SessionID string `json:"session_id" need:"yes"`
}

func (d *Detach) Validate() error { return checkSession(d.SessionID) }

func checkRef(field string, s *string) error {
	if s == nil {
		return nil
	}
	return checkLength(field, *s, MaxRef)
}

func checkLength(field, s string, max int) error {
	if n := utf8.RuneCountInString(s); n < 1 || n > max {
		return fmt.Errorf("%s must have 1 to %d characters", field, max)
	}
	return nil
}

func checkSession(id string) error {
	if !SessionFits(id) {
		return fmt.Errorf("session_id must have 1 to %d letters, digits, dots, colons, dashes or underscores", MaxSession)
	}
	return nil
}

func checkRevision(n int64) error {
	if n < 1 {
		return errors.New("revision must be at least 1")
	}
	return nil
}
