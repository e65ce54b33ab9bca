package files

import (
	"os/user"
	"strconv"
	"sync"
)

// owners turns user and group numbers into names, each looked up once. Safe
// for concurrent use.
type owners struct{ users, groups sync.Map }

func (o *owners) user(uid int) string {
	return cached(&o.users, uid, func(id string) (string, error) {
		u, err := user.LookupId(id)
		if err != nil {
			return "", err
		}
		return u.Username, nil
	})
}

func (o *owners) group(gid int) string {
	return cached(&o.groups, gid, func(id string) (string, error) {
		g, err := user.LookupGroupId(id)
		if err != nil {
			return "", err
		}
		return g.Name, nil
	})
}

func cached(m *sync.Map, id int, find func(string) (string, error)) string {
	if name, ok := m.Load(id); ok {
		return name.(string)
	}
	name, err := find(strconv.Itoa(id))
	if err != nil {
		name = strconv.Itoa(id)
	}
	m.Store(id, name)
	return name
}
