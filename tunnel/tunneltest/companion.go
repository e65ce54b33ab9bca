package tunneltest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"localpc/tunnel/hub/store"
	msg "localpc/tunnel/wire/autogpt"
)

// CompanionToken signs a computer of AutoGPT's wire in for the owner of the
// hub with that data, as the hub's pages would, and gives its access token.
func CompanionToken(t testing.TB, data string) string {
	t.Helper()
	return Token(t, data, msg.ClientID, msg.Scope, "agpt_xt_")
}

// Token is that for any client, whose access tokens begin with prefix. No
// machine has the sign-in yet.
func Token(t testing.TB, data, client, scope, prefix string) string {
	t.Helper()
	s, err := store.Open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, id, now := t.Context(), uuid.NewString(), s.Steady()
	pair := store.Pair{Access: prefix + uuid.NewString(), Refresh: "r_" + uuid.NewString(), AccessFor: time.Hour, RefreshFor: time.Hour}
	r := store.SignInRequest{ID: id, Client: client, Scopes: []string{scope}, Redirect: "http://localhost:41899/callback", State: "s", Source: id, Until: now.Add(time.Minute)}
	if err := s.AddSignInRequest(ctx, now, r, "", "", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ApproveSignIn(ctx, now, id, store.OwnerID, id, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RedeemCode(ctx, now, r.Client, id, func(store.SignInRequest) (store.Pair, error) { return pair, nil }); err != nil {
		t.Fatal(err)
	}
	return pair.Access
}

// SetFolder sets the folder of such a computer of the owner's, as the hub's
// pages do.
func SetFolder(t testing.TB, data, machine, folder string) {
	t.Helper()
	s, err := store.Open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.SetFolder(t.Context(), store.OwnerID, machine, folder); err != nil {
		t.Fatal(err)
	}
}
