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
	wordsURL       = "store url: want redis://, redis+sentinel:// or redis+cluster:// (rediss for TLS)"
	wordsSigns     = "store url: it cannot be read; in name and password write % as %25, / as %2F, ? as %3F, # as %23, @ as %40"
	wordsMaster    = "store url: redis+sentinel:// wants the name its Sentinels watch: redis+sentinel://HOST:26379/0?master_name=NAME"
	wordsReplica   = "this Redis is a replica; name its primary in store.url, or its Sentinels with redis+sentinel://"
	wordsAttach    = "attach a replica to it, or lower store.wait.replicas"
	wordsNone      = "there is no store in this Redis; see that the url and its database number are right"
	wordsConfirmed = "%d of the %d replicas that store.wait asks for have it; see that they run and are connected"
	wordsPrefix    = "store prefix %q: want letters, digits, - and _ only"
)

// String is one line with the cure.
func (p Problem) String() string {
	return fmt.Sprintf("%s: %s is %s, want %s: %s", p.Server, p.Setting, p.Have, p.Want, p.Cure)
}

func cureSet(setting, value string) string {
	return fmt.Sprintf("CONFIG SET %s %s, and %s %s in redis.conf", setting, value, setting, value)
}
