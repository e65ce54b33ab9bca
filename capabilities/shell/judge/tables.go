package judge

import (
	"maps"
	"sync"
)

var (
	tablesOnce sync.Once
	tablesMap  map[string]*program
)

// tables are all programs that are known. Built at the first use: what the
// programs do refers back to the tables.
func tables() map[string]*program {
	tablesOnce.Do(func() {
		m := map[string]*program{}
		for _, t := range []map[string]*program{readers(), printers(), changers(), archives(), filters(), wrappers(), languages(), runners(), network(), system(), media(), workers()} {
			maps.Copy(m, t)
		}
		m["git"] = &program{says: "Works with the versions git keeps", is: free | alone, do: git}
		for alias, name := range map[string]string{
			"egrep": "grep", "fgrep": "grep", "zgrep": "grep", "gawk": "awk", "mawk": "awk", "nawk": "awk", "original-awk": "awk",
			"fdfind": "fd", "bunzip2": "gunzip", "unxz": "gunzip", "uncompress": "gunzip",
			"bzip2": "gzip", "xz": "gzip", "zstd": "gzip", "lzma": "gzip", "lz4": "gzip", "pigz": "gzip", "pbzip2": "gzip", "lbzip2": "gzip", "pixz": "gzip", "compress": "gzip", "brotli": "gzip", "zopfli": "gzip", "unpigz": "gunzip", "gsed": "sed", "gtar": "tar", "bsdtar": "tar",
			"ash": "sh", "rbash": "bash", "vim": "vi", "nvim": "vi", "ex": "vi", "view": "vi", "podman": "docker", "nodejs": "node", "toybox": "busybox",
			"yarn": "npm", "pnpm": "npm", "bun": "npm", "gmake": "make", "7za": "7z", "7zr": "7z", "apt-get": "apt", "aptitude": "apt", "yum": "dnf",
			"killall": "pkill", "ncat": "nc", "netcat": "nc", "telnet": "nc", "pico": "nano",
		} {
			m[alias] = m[name]
		}
		tablesMap = m
	})
	return tablesMap
}
