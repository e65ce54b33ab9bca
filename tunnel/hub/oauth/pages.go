package oauth

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/store"
)

// ErrTooMany means that too many codes were typed lately, from one address or
// in all.
var ErrTooMany = errors.New("too many codes were tried; wait a minute")

// Pending is a sign-in that waits for a person, as a page shows it. What the
// computer says of itself is bounded and has nothing invisible in it; it proves
// nothing.
type Pending struct {
	ID, Client, ClientName       string
	Machine, MachineName, System string
	Address                      string // of who asked
	Match                        string // four digits, "" for a device
	Scope                        string
	Device                       bool
	// Program: it is a program that asks, not a computer. MachineName is what it
	// calls itself, System the host that describes it ("" for none), Redirect
	// where the answer goes, Scopes what it asks for.
	Program  bool
	Redirect string
	Scopes   []string
	Until    time.Time
}

func (f *Face) pending(r store.SignInRequest, err error) (Pending, error) {
	if err != nil {
		return Pending{}, err
	}
	p := Pending{ID: r.ID, Client: r.Client, Machine: r.Machine, MachineName: r.MachineName, System: r.System, Address: r.Address,
		Match: r.Match, Scope: strings.Join(r.Scopes, " "), Device: r.Device, Until: f.told(r.Until),
		Program: r.Resource != "", Redirect: r.Redirect, Scopes: r.Scopes}
	if c := clientNamed(r.Client); c != nil {
		p.ClientName = c.name
	}
	return p, nil
}

// Pending gives a sign-in that waits. store.ErrNotFound when there is none, it
// was answered, or its time is over.
func (f *Face) Pending(ctx context.Context, id string) (Pending, error) {
	return f.pending(f.store.WaitingSignIn(ctx, f.now(), id))
}

// PendingDevice gives the sign-in of a device by the code that it shows, in
// whatever case and grouping it was typed. store.ErrNotFound for a wrong code,
// ErrTooMany when from, or everybody together, has tried too often.
func (f *Face) PendingDevice(ctx context.Context, userCode string, from netip.Addr) (Pending, error) {
	now := f.now()
	if !f.typed.Take(limit.Network(from)) || !f.typedAll.Take("") {
		return Pending{}, ErrTooMany
	}
	code, ok := typedCode(userCode)
	if !ok {
		return Pending{}, store.ErrNotFound
	}
	return f.pending(f.store.WaitingDevice(ctx, now, code))
}

// codeLength is the length of a user code without its dash: one in 25,600
// million.
const codeLength = 8

func typedCode(s string) (string, bool) {
	var b strings.Builder
	for _, r := range strings.ToUpper(s) {
		switch {
		case r == '-' || r == '–' || r == ' ' || r == '\u00a0':
		case b.Len() == codeLength || !strings.ContainsRune(op.CharSetBase20, r):
			return "", false
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), b.Len() == codeLength
}

// Approve notes, once, that the user said yes, and gives where the browser goes
// with the answer, "" for a device. store.ErrNotFound when the request does not
// wait any more; store.ErrTaken when another user of the hub is signed in with
// that computer.
func (f *Face) Approve(ctx context.Context, id, user string) (string, error) {
	code := random(32)
	r, err := f.store.ApproveSignIn(ctx, f.now(), id, user, code, f.o.CodeTTL)
	if err != nil || r.Device {
		return "", err
	}
	return f.back(r, url.Values{"code": {code}}), nil
}

// ApproveProgram is Approve for a program; called is what the user calls it, ""
// for a name that says nothing. store.ErrCalledTaken when another of their
// programs has the name.
func (f *Face) ApproveProgram(ctx context.Context, id, user, called string) (string, error) {
	code := random(32)
	r, err := f.store.ApproveProgram(ctx, f.now(), id, user, called, code, f.o.CodeTTL)
	if err != nil {
		return "", err
	}
	return f.back(r, url.Values{"code": {code}}), nil
}

// Deny notes, once, that a person said no, and gives where the browser goes
// with the answer, "" for a device.
func (f *Face) Deny(ctx context.Context, id string) (string, error) {
	r, err := f.store.DenySignIn(ctx, f.now(), id)
	if err != nil || r.Device {
		return "", err
	}
	return f.back(r, url.Values{"error": {"access_denied"}, "error_description": {"The person said no."}}), nil
}

// back is the redirect to the client with the answer, the state it gave, and,
// but for AutoGPT's, the issuer (RFC 9207).
func (f *Face) back(r store.SignInRequest, answer url.Values) string {
	if r.State != "" {
		answer.Set("state", r.State)
	}
	if r.Client != autogpt.id {
		answer.Set("iss", f.o.Issuer)
	}
	if strings.Contains(r.Redirect, "?") { // a program's may have a query of its own
		return r.Redirect + "&" + answer.Encode()
	}
	return r.Redirect + "?" + answer.Encode()
}
