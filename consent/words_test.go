package consent_test

import (
	"testing"

	"localpc/consent"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1000: "1.0 KB", 12_345: "12 KB", 999_499: "999 KB",
		999_500: "1.0 MB", 1_340_000_000: "1.3 GB", 5_000_000_000_000: "5000 GB"} {
		if got := consent.Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
