package tunneltest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/hub/store"
)

// CompanionToken signs a computer of AutoGPT's wire in for the owner of the
// hub with that data, as the hub's pages would, and gives its access token.
func CompanionToken(t testing.TB, data string) string {
	t.Helper()
	s, err := store.Open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, id, now := t.Context(), uuid.NewString(), s.Steady()
	pair := store.Pair{Access: "agpt_xt_" + uuid.NewString(), Refresh: "agpt_rt_" + uuid.NewString(), AccessFor: time.Hour, RefreshFor: time.Hour}
	r := store.SignInRequest{ID: id, Client: autogpt.Client, Scopes: []string{autogpt.Scope}, Redirect: "http://localhost:41899/callback", State: "s", Until: now.Add(time.Minute)}
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
