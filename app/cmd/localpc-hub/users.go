package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"localpc/tunnel/hub/store"
)

// whose is the id of the person that --user names, by id or name; the owner's
// without it.
func (c *cli) whose(ctx context.Context, s *store.Store) (string, error) {
	if c.user == "" {
		return store.OwnerID, nil
	}
	users, err := s.Users(ctx)
	if err != nil {
		return "", err
	}
	for _, u := range users {
		if u.ID == c.user || strings.EqualFold(u.Name, c.user) {
			return u.ID, nil
		}
	}
	return "", noPerson(c.user)
}

func noPerson(name string) error {
	return fmt.Errorf("there is nobody named %s on this hub; localpc-hub user list shows who is", shown(name))
}

// people are the names for a column of a list; it is left out where there is
// only the owner.
type people map[string]string

func (c *cli) people(ctx context.Context, s *store.Store) (people, error) {
	users, err := s.Users(ctx)
	if err != nil || len(users) < 2 {
		return nil, err
	}
	p := people{}
	for _, u := range users {
		p[u.ID] = shown(u.Name)
	}
	return p, nil
}

func (p people) head() string {
	if p == nil {
		return ""
	}
	return "WHOSE\t"
}

func (p people) of(user string) string {
	switch name, known := p[user]; {
	case p == nil:
		return ""
	case known:
		return name + "\t"
	}
	return "(removed)\t"
}

func (c *cli) userAdd(ctx context.Context, s *store.Store, name string) error {
	u, invite, err := s.AddUser(ctx, name)
	if err != nil {
		return err
	}
	if err := c.link(ctx, s, store.InviteJoin, invite); err != nil {
		return err
	}
	fmt.Fprintf(c.errs, "Give this link to %s. It is shown once, and good once, for a day. They are known as %s.\n", shown(u.Name), u.ID)
	return nil
}

// link prints where a person chooses how to log in.
func (c *cli) link(ctx context.Context, s *store.Store, kind, invite string) error {
	address, err := s.Address(ctx)
	if err != nil {
		return err
	}
	if c.public != "" {
		address = strings.TrimSuffix(c.public, "/")
	}
	if address == "" {
		address = "http://" + c.listen
		fmt.Fprintln(c.errs, "The hub has not been started yet, so its address is a guess; name it with --public-url URL.")
	}
	_, err = fmt.Fprintf(c.out, "%s/%s?token=%s\n", address, kind, invite)
	return err
}

func (c *cli) userList(ctx context.Context, s *store.Store, _ string) error {
	users, err := s.Users(ctx)
	if err != nil || c.json {
		return c.list(users, err)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tROLE\tMADE\tNOTE")
	for _, u := range users {
		note := ""
		if !u.Claimed {
			note = "has not logged in yet"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", u.ID, shown(u.Name), u.Role, moment(u.Created), note)
	}
	return w.Flush()
}

func (c *cli) userReset(ctx context.Context, s *store.Store, id string) error {
	u, err := s.User(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return noPerson(id)
	} else if err != nil {
		return err
	}
	invite, err := s.ResetUser(ctx, id)
	if err != nil {
		return err
	}
	// Which page it opens depends on whether they have ever logged in.
	i, err := s.FindInvite(ctx, invite)
	if err != nil {
		return err
	}
	if err := c.link(ctx, s, i.Kind, invite); err != nil {
		return err
	}
	fmt.Fprintf(c.errs, "%s is logged out everywhere, and logs in anew with this link. It is shown once, and good once. Their keys and computers go on.\n", shown(u.Name))
	return nil
}

func (c *cli) userRemove(ctx context.Context, s *store.Store, id string) error {
	err := s.RemoveUser(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noPerson(id)
	case err != nil:
		return err
	}
	fmt.Fprintln(c.errs, "They are not on this hub any more. Their keys do not work, and a running hub lets their computers go now.")
	return nil
}
