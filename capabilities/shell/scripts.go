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
	"strings"
	"syscall"

	"localpc/capabilities"
)

// Bounds of looking for scripts.
// They do not depend on time: Run has to find what Describe found.
const (
	maxWords      = 2000
	maxScripts    = 16
	maxScriptSize = 1 << 20
)

// script is a file of the folder that the command line names and that looks
// like a program: its contents are part of what was shown.
type script struct {
	name string // relative to the folder
	size int64
	hash string // hex SHA-256
}

func (s script) sentence() string {
	return fmt.Sprintf("Names the script %s (%d bytes, SHA-256 %s…)", s.name, s.size, s.hash[:12])
}

var scriptEndings = map[string]bool{
	".sh": true, ".bash": true, ".zsh": true, ".py": true, ".js": true, ".mjs": true, ".cjs": true, ".ts": true,
	".rb": true, ".pl": true, ".php": true, ".lua": true, ".awk": true, ".sed": true, ".mk": true,
}

// findScripts looks at every word of the command. Words are cut more often
// than a shell would, which can only find more.
func findScripts(folder string, pl *plan) []script {
	root, err := os.OpenRoot(folder + "/") // with the slash it waits for no pipe in the folder's place
	if err != nil {
		return nil
	}
	defer root.Close()
	dir := "."
	if under(pl.real, folder) {
		dir = strings.TrimPrefix(strings.TrimPrefix(pl.real, folder), "/")
	}
	words := strings.FieldsFunc(strings.Join(pl.argv, " "), func(r rune) bool {
		return strings.ContainsRune(" \t\n\r;|&()<>'\"`$={},", r)
	})
	var out []script
	seen := map[string]bool{}
	for i, w := range words {
		if i >= maxWords || len(out) >= maxScripts {
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
		if s, ok := readScript(root, rel); ok {
			out = append(out, s)
		}
	}
	return out
}

func readScript(root *os.Root, rel string) (script, bool) {
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
	if !scriptEndings[strings.ToLower(filepath.Ext(rel))] && fi.Mode().Perm()&0o111 == 0 && !bytes.Equal(head[:n], []byte("#!")) {
		return script{}, false
	}
	h := sha256.New()
	size, err := io.Copy(h, io.LimitReader(f, maxScriptSize+1))
	if err != nil || size > maxScriptSize {
		return script{}, false
	}
	return script{name: rel, size: size, hash: hex.EncodeToString(h.Sum(nil))}, true
}

func fingerprintOf(folder capabilities.FileID, scripts []script) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d\n", folder.Dev, folder.Ino)
	for _, s := range scripts {
		fmt.Fprintf(h, "%q %s\n", s.name, s.hash)
	}
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
