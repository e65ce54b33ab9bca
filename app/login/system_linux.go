package login

import (
	"bufio"
	"os"
	"strings"
)

// system reads os-release(5).
func system() string {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		if f, err = os.Open("/usr/lib/os-release"); err != nil {
			return "Linux"
		}
	}
	defer f.Close()
	v := map[string]string{"NAME": "Linux"}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if name, value, ok := strings.Cut(sc.Text(), "="); ok {
			v[name] = strings.Trim(value, `"'`)
		}
	}
	return v["NAME"] + " " + v["VERSION_ID"]
}
