package shell

import (
	"path"
	"strings"

	"localpc/capabilities/shell/spawn"
)

// proxyEnv tells the programs in a container where the proxy is. Addresses of
// the container's own loopback are not for it. ALL_PROXY is HTTP too: some
// programs stop at a SOCKS address that they can't use.
var proxyEnv = func() map[string]string {
	proxy := "http://127.0.0.1:" + itoa(spawn.ProxyPort)
	const own = "localhost,127.0.0.1,::1,0.0.0.0,.localhost"
	return map[string]string{
		"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "NO_PROXY": own,
		"http_proxy": proxy, "https_proxy": proxy, "all_proxy": proxy, "no_proxy": own,
		"NODE_USE_ENV_PROXY": "1", // from Node.js 22.21 and 24 on, its fetch too
	}
}()

// sshConfig leads ssh, scp, and git over ssh through the proxy.
const sshConfig = "Host * !localhost !127.0.0.1 !::1\n\tProxyCommand " + spawnInside + " " + spawn.RoleConnect + " %h %p\n"

// programOf names a command in a word, where its own programs say nothing
// about themselves: the first that is no assignment.
func programOf(pl *plan) string {
	for _, word := range strings.Fields(pl.exact) {
		if !strings.Contains(word, "=") {
			return programName(path.Base(word))
		}
	}
	return "a program"
}

// programName keeps what a program's name is made of.
func programName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.+", r) {
			return r
		}
		return -1
	}, s)
	if s == "" {
		return "a program"
	}
	return clip(s, 32)
}
