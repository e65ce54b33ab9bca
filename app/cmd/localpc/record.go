package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/store"
	"localpc/consent"
	"localpc/consent/record"
)

// recordCommand verifies, exports or shows the end of the record.
func recordCommand(c *cli, args []string) error {
	ctx := context.Background()
	const use = usageError("record takes verify, export FILE (- for standard output), or tail")
	if len(args) == 0 {
		return use
	}
	st, err := store.OpenToRead(c.paths.Data)
	if err != nil {
		return err
	}
	defer st.Close()
	switch {
	case args[0] == "verify" && len(args) == 1:
		return verify(ctx, c, st)
	case args[0] == "export" && len(args) == 2 && args[1] == "-":
		return record.Export(ctx, st, c.out)
	case args[0] == "export" && len(args) == 2:
		f, err := os.OpenFile(args[1], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(record.Export(ctx, st, f), f.Close())
	case args[0] == "tail" && len(args) == 1:
		last, _, err := st.LastEntry(ctx, "")
		if err != nil {
			return err
		}
		return st.EachEntry(ctx, max(1, last.Seq-19), func(e consent.Entry) error {
			if c.json {
				return json.NewEncoder(c.out).Encode(e)
			}
			_, err := fmt.Fprintf(c.out, "%d  %s  %-8s  %s\n", e.Seq, when(e.Time), e.Kind, consent.Visible(entryWords(e), false))
			return err
		})
	}
	return use
}

// entryWords is one entry of the record in a few words.
func entryWords(e consent.Entry) string {
	switch e.Kind {
	case record.KindDecision:
		var d record.Decision
		if json.Unmarshal(e.Body, &d) == nil {
			return d.Request.Principal.Name + ": " + d.Request.Title + " · " + string(d.Decision.Outcome)
		}
	case record.KindOutcome:
		var o record.Outcome
		if json.Unmarshal(e.Body, &o) == nil {
			return o.State + " · " + o.Result
		}
	case record.KindEvent:
		var ev record.Event
		if json.Unmarshal(e.Body, &ev) == nil {
			return ev.What + " " + ev.Detail
		}
	}
	return ""
}

func verify(ctx context.Context, c *cli, st *store.Store) error {
	set, err := settings.Load(c.paths)
	if err != nil {
		return err
	}
	keeper, err := readSecrets(c, set)
	if err != nil {
		return err
	}
	key, kerr := login.ReadRecordKey(ctx, keeper)
	report, err := record.Verify(ctx, st, key)
	if err != nil {
		return err
	}
	if c.json {
		err = printJSON(c, report)
	} else if report.OK {
		fmt.Fprintf(c.out, "The record is whole: %d entries since %s, head %.12s…\n", report.Entries, when(report.Since), report.Head)
		switch {
		case errors.Is(kerr, login.ErrLocked):
			fmt.Fprintln(c.out, "Its key could not be compared with the one in the encrypted file; name its passphrase with --passphrase-file FILE for that.")
		case kerr != nil:
			fmt.Fprintln(c.out, "Its key could not be compared with the keychain's, which can't be read here.")
		}
		if report.UnkeptFrom > 0 {
			fmt.Fprintf(c.out, "From entry %d on it is signed with a key that was kept in memory only, since the keychain could not be used.\n", report.UnkeptFrom)
		} else if report.Unkept > 0 {
			fmt.Fprintf(c.out, "%s signed with a key that was kept in memory only.\n", parted(report.Unkept))
		}
		if report.Others > 0 {
			fmt.Fprintf(c.out, "%s signed with a kept key that is not the keychain's now.\n", parted(report.Others))
		}
	}
	if err == nil && !report.OK {
		err = errors.New(report.Problem)
	}
	return err
}

// parted begins a sentence about so many parts of the record.
func parted(n int) string {
	if n == 1 {
		return "One part of it was"
	}
	return fmt.Sprintf("%d parts of it were", n)
}
