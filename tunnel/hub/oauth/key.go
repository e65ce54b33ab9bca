package oauth

import (
	stdcrypto "crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/crypto"
	"github.com/zitadel/oidc/v3/pkg/oidc"
)

// signingKey signs ID tokens. It is derived from the secret that lies beside
// the database, so it outlives restarts and a copy of the database alone signs
// nothing. Access and refresh tokens are random, and not signed.
type signingKey struct {
	signer jose.Signer
	public jose.JSONWebKey
}

func newSigningKey(secret []byte) (*signingKey, error) {
	for try := range 8 {
		seed, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("localpc hub id token signing key %d", try), 32)
		if err != nil {
			return nil, fmt.Errorf("signing key: %w", err)
		}
		// One seed in four thousand million is no key of this curve.
		private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed)
		if err != nil {
			continue
		}
		public := jose.JSONWebKey{Key: private.Public(), Algorithm: string(jose.ES256), Use: "sig"}
		print, err := public.Thumbprint(stdcrypto.SHA256)
		if err != nil {
			return nil, fmt.Errorf("signing key: %w", err)
		}
		public.KeyID = base64.RawURLEncoding.EncodeToString(print)
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: public.KeyID}},
			(&jose.SignerOptions{}).WithType("JWT"))
		if err != nil {
			return nil, fmt.Errorf("signing key: %w", err)
		}
		return &signingKey{signer: signer, public: public}, nil
	}
	return nil, fmt.Errorf("the hub's secret gives no signing key")
}

// idToken says who signed in, for clients that asked for openid.
func (f *Face) idToken(user, client, nonce, access string) (string, error) {
	now := time.Now()
	if f.o.Now != nil {
		now = f.o.Now()
	}
	claims := oidc.NewIDTokenClaims(f.o.Issuer, user, []string{client}, now.Add(f.o.AccessTTL), now, nonce, "", nil, client, 0)
	claims.IssuedAt = oidc.FromTime(now)
	var err error
	if claims.AccessTokenHash, err = oidc.ClaimHash(access, jose.ES256); err != nil {
		return "", fmt.Errorf("id token: %w", err)
	}
	return crypto.Sign(claims, f.key.signer)
}
