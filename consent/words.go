package consent

import (
	"strconv"
	"strings"
)

// HomePath is a folder as people write it: what lies in home begins with "~".
func HomePath(home, folder string) string {
	home = strings.TrimSuffix(home, "/")
	if home == "" {
		return folder
	}
	if rest, ok := strings.CutPrefix(folder, home); ok && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return folder
}

// Bytes is a number of bytes as people say it: "1.3 GB".
func Bytes(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1000:
		return strconv.FormatInt(n, 10) + " bytes"
	}
	v := float64(n)
	for _, unit := range []string{"KB", "MB", "GB"} {
		v /= 1000
		if v < 9.95 {
			return strconv.FormatFloat(v, 'f', 1, 64) + " " + unit
		}
		if v < 999.5 || unit == "GB" {
			return strconv.FormatFloat(v, 'f', 0, 64) + " " + unit
		}
	}
	return ""
}
