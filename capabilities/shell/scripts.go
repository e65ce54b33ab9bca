package shell

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"localpc/capabilities"
	"localpc/consent"
)

// Bounds of looking for scripts.
// They do not depend on time: Run has to find what Describe found.
const (
	maxWords      = 2000
	maxScripts    = 16
	maxDeciding   = 64
	maxScriptSize = 1 << 20
)

// script is a file of the folder that the command line names and that looks
// like a program: its contents are part of what was shown.
type script struct {
	name string // relative to the folder
	size int64
	hash string // hex SHA-256; "" where it could not be read
	when int64  // when it was changed, where it is too large to be read
}

func (s script) sentence() string {
	return fmt.Sprintf("Names the script %s (%d bytes, SHA-256 %s…)", consent.Visible(s.name, false), s.size, s.hash[:12])
}

var scriptEndings = map[string]bool{
	".sh": true, ".bash": true, ".zsh": true, ".py": true, ".js": true, ".mjs": true, ".cjs": true, ".ts": true,
	".rb": true, ".pl": true, ".php": true, ".lua": true, ".awk": true, ".sed": true, ".mk": true,
}

// findScripts looks at what was read to judge the command, at what decides what
// a program of it does, and at every word of it. Words are cut more often than
// a shell would, which can only find more.
func findScripts(root *os.Root, pl *plan) []script {
	folder, dir := pl.session.Folder, "."
	if under(pl.real, folder) {
		dir = strings.TrimPrefix(strings.TrimPrefix(pl.real, folder), "/")
	}
	words := strings.FieldsFunc(strings.Join(pl.argv, " "), func(r rune) bool {
		return strings.ContainsRune(" \t\n\r;|&()<>'\"`$={},", r)
	})
	var out []script
	seen := map[string]bool{}
	for _, name := range pl.deciding() {
		if rel, ok := pl.rel(name); ok && !seen[rel] && len(out) < maxDeciding {
			seen[rel] = true
			s, ok := readScript(root, rel, true)
			if !ok {
				s = script{name: rel} // none now; one that appears would decide
				if fi, err := root.Lstat(rel); err == nil {
					s.size, s.when = fi.Size(), fi.ModTime().UnixNano()
				}
			}
			out = append(out, s)
		}
	}
	most := len(out) + maxScripts
	for i, w := range words {
		if i >= maxWords || len(out) >= most {
			break
		}
		var rel string
		switch {
		case under(w, inside):
			rel = strings.TrimPrefix(w, inside)
		case under(w, folder):
			rel = strings.TrimPrefix(w, folder)
		case strings.HasPrefix(w, "~/"):
			rel = w[2:]
		case path.IsAbs(w) || strings.HasPrefix(w, "-"):
			continue
		default:
			rel = path.Join(dir, w)
		}
		rel = strings.TrimPrefix(path.Clean(rel), "/")
		if rel == "" || rel == "." || seen[rel] || len(rel) > 4096 {
			continue
		}
		seen[rel] = true
		if s, ok := readScript(root, rel, false); ok {
			out = append(out, s)
		}
	}
	return out
}

// deciding are the files that the judge read, or that decide what a program of
// the command does, as the command sees them.
func (pl *plan) deciding() []string {
	all := slices.Clone(pl.judged.Read)
	for _, p := range pl.judged.Parts {
		for _, a := range p.Acts {
			all = append(all, a.Scripts...)
		}
	}
	return all
}

// readScript reads what looks like a script, or anything.
func readScript(root *os.Root, rel string, anything bool) (script, bool) {
	// Without blocking: the name may be a pipe.
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return script{}, false
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxScriptSize {
		return script{}, false
	}
	head := make([]byte, 2)
	n, _ := f.ReadAt(head, 0)
	if !anything && !scriptEndings[strings.ToLower(filepath.Ext(rel))] && fi.Mode().Perm()&0o111 == 0 && !bytes.Equal(head[:n], []byte("#!")) {
		return script{}, false
	}
	h := sha256.New()
	size, err := io.Copy(h, io.LimitReader(f, maxScriptSize+1))
	if err != nil || size > maxScriptSize {
		return script{}, false
	}
	return script{name: rel, size: size, hash: hex.EncodeToString(h.Sum(nil))}, true
}

// fingerprintOf is of everything that was looked at, files among them.
func fingerprintOf(folder capabilities.FileID, scripts []script, files string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d\n", folder.Dev, folder.Ino)
	for _, s := range scripts {
		fmt.Fprintf(h, "%q %s %d %d\n", s.name, s.hash, s.size, s.when)
	}
	fmt.Fprintln(h, files)
	return hex.EncodeToString(h.Sum(nil))
}

// runners run what a file of the folder says, whatever the command looks like.
var runners = map[string]string{
	"npm": "package.json", "yarn": "package.json", "pnpm": "package.json", "npx": "package.json", "bun": "package.json",
	"make": "the Makefile", "just": "the justfile", "rake": "the Rakefile", "gradle": "build.gradle", "mvn": "pom.xml",
	"cargo": "Cargo.toml and build.rs", "docker": "the Dockerfile", "tox": "tox.ini", "composer": "composer.json",
}

func runnerSentence(text string) string {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()'\"`", r) }) {
		if file := runners[path.Base(w)]; file != "" {
			return path.Base(w) + " runs whatever " + file + " in the folder says"
		}
	}
	return ""
}
