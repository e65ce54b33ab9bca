package autogpt

import (
	"os"
	goruntime "runtime"
	"strings"
	"unicode/utf8"

	msg "localpc/tunnel/wire/autogpt"
)

// System is this computer as HELLO names it; false where the protocol has no
// name for it, so that it cannot be paired.
func System() (platform, arch string, ok bool) {
	arch, known := map[string]string{"amd64": "x86_64", "arm64": "arm64"}[goruntime.GOARCH]
	switch platform = goruntime.GOOS; platform {
	case "darwin", "windows":
	case "linux":
		if v, err := os.ReadFile("/proc/version"); err == nil && strings.Contains(strings.ToLower(string(v)), "microsoft") {
			platform = "wsl2"
		}
	default:
		known = false
	}
	return platform, arch, known
}

// safe leaves out of a name what a hub would refuse it for.
func safe(name string) string {
	name = strings.Map(func(r rune) rune {
		if !utf8.ValidRune(r) || !msg.SafeText(string(r)) {
			return -1
		}
		return r
	}, name)
	if r := []rune(name); len(r) > 128 {
		name = string(r[:128])
	}
	return name
}
