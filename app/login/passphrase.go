package login

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// maxPassphrase bounds a file that holds one, in bytes.
const maxPassphrase = 4096

// CheckPassphrase refuses one that is too short for a new vault.
func CheckPassphrase(passphrase string) error {
	if utf8.RuneCountInString(passphrase) < minPassphrase {
		return fmt.Errorf("a passphrase needs %d characters or more", minPassphrase)
	}
	return nil
}

// ReadPassphrase reads a passphrase from the first line of a file, which must
// be this user's, or root's, and readable by nobody else. The error is one
// plain sentence with the remedy.
func ReadPassphrase(path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("the passphrase can't be read: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no ordinary file, so no passphrase is read from it", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the passphrase can't be read: %w", err)
	}
	defer f.Close()
	if fi, err = f.Stat(); err != nil { // of what was opened
		return "", fmt.Errorf("the passphrase can't be read: %w", err)
	}
	if err := private(path, fi); err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPassphrase+1))
	if err != nil {
		return "", fmt.Errorf("the passphrase can't be read: %w", err)
	}
	line, rest, _ := strings.Cut(string(data), "\n")
	line = strings.TrimSuffix(line, "\r")
	switch {
	case len(data) > maxPassphrase, strings.TrimSpace(rest) != "":
		return "", fmt.Errorf("%s has more than one line of a passphrase", path)
	case line == "":
		return "", fmt.Errorf("%s has no passphrase in its first line", path)
	}
	return line, nil
}
