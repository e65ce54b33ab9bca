package login

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
)

// RecordKey returns the key that signs the record. kept is false when it lives
// in memory only; err then says why.
func RecordKey(ctx context.Context, k Keeper) (key ed25519.PrivateKey, kept bool, err error) {
	s, err := k.Get(ctx, recordKey)
	if err == nil {
		seed, derr := base64.StdEncoding.DecodeString(s)
		if derr == nil && len(seed) == ed25519.SeedSize {
			return ed25519.NewKeyFromSeed(seed), true, nil
		}
		err = ErrMissing // unreadable: begin a new epoch
	}
	_, key, gerr := ed25519.GenerateKey(nil)
	if gerr != nil {
		return nil, false, gerr
	}
	if errors.Is(err, ErrMissing) {
		err = k.Set(ctx, recordKey, base64.StdEncoding.EncodeToString(key.Seed()))
	}
	return key, err == nil, err
}

// ReadRecordKey returns the public key of the record's newest epoch as the
// keeper has it, for verify.
func ReadRecordKey(ctx context.Context, k Keeper) (ed25519.PublicKey, error) {
	s, err := k.Get(ctx, recordKey)
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, ErrMissing
	}
	return ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey), nil
}
