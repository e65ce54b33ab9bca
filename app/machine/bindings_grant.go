package machine

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"localpc/app/login"
	"localpc/capabilities"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// claims are what a root grant says, in the order of its JSON: that this
// machine bound a chat to a folder. It binds again, and lets do nothing.
type claims struct {
	AllowedRoot string `json:"allowed_root"`
	Fingerprint string `json:"fingerprint"`
	IssuedAt    int64  `json:"issued_at"` // Unix seconds
	MachineID   string `json:"machine_id"`
	Revision    int64  `json:"revision"`
	SessionID   string `json:"session_id"`
}

const grantVersion = "v1"

// sign writes the claims as a grant: v1.CLAIMS.MAC, both base64url.
func (c claims) sign(secret []byte) string {
	body, err := json.Marshal(c)
	if err != nil {
		panic("machine: claims that JSON cannot hold: " + err.Error())
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return grantVersion + "." + text + "." + base64.RawURLEncoding.EncodeToString(grantMAC(secret, text))
}

func grantMAC(secret []byte, text string) []byte {
	key := hmac.New(sha256.New, secret)
	key.Write([]byte("autogpt-root-grant-v1"))
	mac := hmac.New(sha256.New, key.Sum(nil))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func grantInvalid(why string) error {
	return wire.Errorf(autogpt.CodeGrantInvalid, "This folder binding does not hold any more: %s. Choose the folder again.", why)
}

var errForged = errors.New("not a grant of this machine")

// readGrant checks a grant's shape and its MAC by one of the secrets, and
// returns what it says.
func readGrant(grant string, secrets ...[]byte) (claims, error) {
	version, rest, _ := strings.Cut(grant, ".")
	text, mac, ok := strings.Cut(rest, ".")
	if version != grantVersion || !ok || len(grant) > autogpt.MaxGrant || strings.ContainsAny(grant, "\r\n") { // base64 would skip them
		return claims{}, errForged
	}
	given, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	if err != nil {
		return claims{}, errForged
	}
	signed := false
	for _, s := range secrets {
		signed = hmac.Equal(given, grantMAC(s, text)) || signed
	}
	if !signed {
		return claims{}, errForged
	}
	body, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return claims{}, errForged
	}
	var c claims
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil || d.More() || c.Revision < 1 || !autogpt.RootFits(c.AllowedRoot) {
		return claims{}, errForged
	}
	return c, nil
}

// fingerprintOf names a folder: where it is, and which one.
func fingerprintOf(path string, id capabilities.FileID) string {
	body, err := json.Marshal(struct {
		Device uint64 `json:"device"`
		Inode  uint64 `json:"inode"`
		Path   string `json:"path"`
	}{id.Dev, id.Ino, path})
	if err != nil {
		panic("machine: a fingerprint that JSON cannot hold: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// secretWithin bounds the keychain: the hub waits for the reply.
const secretWithin = 3 * time.Second

// secrets are what root grants are signed with. Safe for concurrent use.
type secrets struct {
	keychain login.Keeper

	mu   sync.Mutex
	kept []byte // from the keychain; guarded by mu
	own  []byte // in memory, while the keychain gives none; guarded by mu
}

// get returns the secret to sign with, first, and all that count. Without a
// keychain it is one in memory: what is signed with it holds until the program
// ends.
func (s *secrets) get(ctx context.Context) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = s.load(ctx)
	}
	var all [][]byte
	if s.kept != nil {
		all = append(all, s.kept)
	} else if s.own == nil {
		s.own = newSecret()
	}
	if s.own != nil {
		all = append(all, s.own)
	}
	return all
}

// load reads the kept secret, or makes it; nil when the keychain does neither.
func (s *secrets) load(ctx context.Context) []byte {
	ctx, cancel := context.WithTimeout(ctx, secretWithin)
	defer cancel()
	text, err := s.keychain.Get(ctx, login.RootGrantSecret)
	if err == nil {
		if secret, derr := base64.StdEncoding.DecodeString(text); derr == nil && len(secret) == sha256.Size {
			return secret
		}
		err = login.ErrMissing // unreadable: what it signed ends
	}
	if !errors.Is(err, login.ErrMissing) {
		return nil
	}
	secret := s.own // what was signed with it meanwhile stays good
	if secret == nil {
		secret = newSecret()
	}
	if s.keychain.Set(ctx, login.RootGrantSecret, base64.StdEncoding.EncodeToString(secret)) != nil {
		return nil
	}
	return secret
}

func newSecret() []byte {
	b := make([]byte, sha256.Size)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return b
}
