package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"localpc/app/login"
)

// passphrase is the one that was named, or typed: twice for a new file.
func (c *cli) passphrase(ctx context.Context) (string, error) {
	if c.passphraseFile != "" {
		return login.ReadPassphrase(c.passphraseFile)
	}
	if !canType() {
		return "", usageError("there is no terminal to type the passphrase; name a file that has it with --passphrase-file FILE")
	}
	passphrase, err := "", error(nil)
	if _, serr := os.Stat(c.paths.Secrets()); serr == nil {
		passphrase, err = typed(ctx, c.out, "Passphrase of "+c.paths.Secrets()+": ")
	} else {
		passphrase, err = newPassphrase(ctx, c.out, "Passphrase for the encrypted file (it is asked at each start, and can't be recovered): ")
	}
	if err == nil && passphrase == "" {
		err = errors.New("no passphrase was given; nothing was changed")
	}
	return passphrase, err
}

// canType tells whether somebody can be asked for a passphrase here.
func canType() bool {
	fd := int(os.Stdin.Fd())
	return term.IsTerminal(fd) && term.IsTerminal(int(os.Stdout.Fd())) && foreground(fd)
}

// typed reads a line from the terminal that is not shown; "" where there is
// none.
func typed(ctx context.Context, out io.Writer, prompt string) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(out, prompt)
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() { // ends with the process where nothing is typed: a read of a terminal can't be ended
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		fmt.Fprintln(out)
		if errors.Is(l.err, io.EOF) {
			return "", nil
		}
		return string(l.text), l.err
	case <-ctx.Done():
		fmt.Fprintln(out)
		return "", errors.Join(errors.New("interrupted"), term.Restore(fd, before))
	}
}

// newPassphrase has one typed twice; "" where the person wants none.
func newPassphrase(ctx context.Context, out io.Writer, prompt string) (string, error) {
	for {
		first, err := typed(ctx, out, prompt)
		if err != nil || first == "" {
			return "", err
		}
		if err := login.CheckPassphrase(first); err != nil {
			fmt.Fprintf(out, "That is too short: %v.\n", err)
			continue
		}
		again, err := typed(ctx, out, "The same once more: ")
		if err != nil {
			return "", err
		}
		if again == first {
			return first, nil
		}
		fmt.Fprintln(out, "The two differ. Once more from the start.")
	}
}
