package redis

import "fmt"

// What people read: what happened, and what to do.
const (
	wordsWiped     = "the store was wiped: Redis no longer holds this gateway's data; restore its backup or restart to begin anew"
	wordsPartition = "the store was wiped in part: partition %s is gone; restore its backup, or delete all of %s to begin anew"
	wordsShape     = "this Redis holds a store with %d partitions, not %d; use the number it was made with"
	wordsSchema    = "this Redis holds a store of schema %d, this gateway speaks %d; use the gateway that made it"
	wordsPacked    = "row %d was packed by another version of the gateway; run that one, or a newer"
	wordsBlocked   = "allow +config|get, or set store durability: relaxed if the service is known to keep every write"
	wordsConnect   = "see that Redis runs and that the store's url is right"
	wordsUpgrade   = "upgrade Redis, or use Valkey"
	wordsURL       = "store url: want redis://, rediss://, redis+sentinel:// or redis+cluster://"
	wordsNone      = "there is no store in this Redis; see that the url and its database number are right"
	wordsPrefix    = "store prefix %q: want letters, digits, - and _ only"
)

// String is one line with the cure.
func (p Problem) String() string {
	return fmt.Sprintf("%s is %s, want %s: %s", p.Setting, p.Have, p.Want, p.Cure)
}

func cureSet(setting, value string) string {
	return fmt.Sprintf("CONFIG SET %s %s, and %s %s in redis.conf", setting, value, setting, value)
}
