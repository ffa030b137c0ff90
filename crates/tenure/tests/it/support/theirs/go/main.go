// A user of redsync on several servers at once, driven line by line from a test.
//
// Arguments: the ports. Reads `try NAME SECONDS`, `wait NAME SECONDS` and `release NAME` on standard input and answers one
// line each: acquired, busy, released or lost.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

func main() {
	var pools []redis.Pool
	for _, port := range os.Args[1:] {
		client := goredislib.NewClient(&goredislib.Options{Addr: "127.0.0.1:" + port})
		pools = append(pools, goredis.NewPool(client))
	}
	user := user{redsync.New(pools...), map[string]*redsync.Mutex{}}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(user.answer(strings.Fields(lines.Text())))
	}
}

type user struct {
	locks *redsync.Redsync
	held  map[string]*redsync.Mutex
}

func (u user) answer(words []string) string {
	verb, name := words[0], words[1]
	if verb == "release" {
		mutex := u.held[name]
		delete(u.held, name)
		if ok, err := mutex.Unlock(); err != nil || !ok {
			return "lost"
		}
		return "released"
	}
	seconds, err := strconv.ParseFloat(words[2], 64)
	if err != nil {
		return err.Error()
	}
	tries := 1
	if verb == "wait" {
		tries = math.MaxInt
	}
	expiry := redsync.WithExpiry(time.Duration(seconds * float64(time.Second)))
	mutex := u.locks.NewMutex(name, expiry, redsync.WithTries(tries))
	if mutex.Lock() != nil {
		return "busy"
	}
	u.held[name] = mutex
	return "acquired"
}
