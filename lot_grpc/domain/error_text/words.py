"""Words of the language of error messages, the most frequent first."""

from __future__ import annotations

from typing import Final

_WORDS: Final = """
not in is to invalid of for no be error cannot with or the failed must type too unknown and value
found file does name an from on string size data unexpected set supported has use at expected
missing number by read already bad could are this many but argument than format open was internal
create version unsupported bytes find range only have valid empty get after out directory length
mode as memory one got match object unable list specified line duplicate key end allowed more
buffer write code arguments it path function should returned input support when long parse default
first large available start used called option exist header mismatch do method field before output
using without may current reading message that index will if character required check while can
integer call context all instead new parameter attribute any multiple system been entry request
variable user id did table time command implemented values contains you allocate change null yet
state pointer failure same illegal source operation least class block given small contain zero
count status sequence group binary address local target byte module parsing close maximum
determine files which encoding offset different access writing load passed exists add process up
allocation negative return defined setting names wrong max requested link flag exceeded level
syntax into there server info warning environment last requires stream because information due
deprecated such both map other options limit enough errors extension reference element specify
handle closed point hash received parameters run during provided short named send characters
result token connection tag two protocol exceeds remove library array flags big zu either types
ignoring convert section update its fields true initialize lu prefix known response between trying
expression pattern undefined filename entries identifier overflow resolve need space ignored
signature want please single executable matching execute root symbol socket registered attempt
base copy regular position closing node compression arg malformed make query program opening
control strings possible signal package present connect parent handler record location register
expecting int none exit were creating cache stat ld test previous descriptor within longer
existing larger needed running enabled interface host action client order delete equal detected
fail back nil temporary removed bits encountered specification inside old fatal include once magic
content kind created configuration left positive another see definition depth event absolute
permitted text property generate label some skipping build database greater width lock keyword
look import fd decode try less destination symbolic starting frame instance false unexpectedly
changed form we store thread following your conversion port rename work lookup full keys callback
stack loop child config would containing pass report filter escape incorrect most disabled
complete bit functions outside search print exactly next item added custom installed so log
feature private free struct elements str extra global boolean mapping initialized attributes errno
uses being here case archive working unrecognized expects reserved even processing newline seek
part second loaded currently alias verify reset like device needs pipe paths encode domain initial
init since objects shared mismatched generated numeric structure compressed relative times where
incompatible few provide waiting might over timeout hex bounds initialization member runtime
install versions active recognized supplied wait switch contents external allow date headers
machine creation specific followed adding standard right accept pair resource off operator parsed
segment float public encoded getting len column remote also nested word identify body service char
results comment args constant enable release scheme append namespace combination expect checking
bound stop statement separator ignore numbers explicit under explicitly assertion likely correctly
image mask select bug references debug marker reached future appear session parser channel literal
implementation permissions dir much bind written application extended metadata description matches
packet operating locate marked directly compatible suffix variables bool them reason together
https display vector via symbols checksum platform network inconsistent take points compiled
through calling declared still save note help declaration unique directive usage these template
loading recursive condition decoding again then verification slice against profile authentication
permission specifier digits override corrupt password tuple setup begin always recursion removing
directories never seconds algorithm selected execution had continue malloc built writable returns
nothing cause tree happen effect validation configured storage retrieve occurred fetch sync
terminated incomplete component family url mean takes groups color total each script progress top
probably associated aborting trace unsigned restore require quoted items calls suitable digit enum
json pool receive page construction implement neither main messages nor certificate construct
handled applied follow double now http dependency fails referenced own properly common lx sign
define quote lines actual compile modify tried reported attempted security break real plugin vs
kernel unit final they go perform callable additional opened raw alignment twice done included
operand details how about unless links dynamic per matched minimum skip merge regex padding
corrupted itself components mix supports exception power truncated delimiter dict proxy smaller
symlink what settings correct style sent std apply modified chain assigned implicit changes
timestamp alloc unavailable python generator know chunk extensions decimal re binding constraint
down insert scope broken fork mmap sending imported original trailing virtual blocks sort random
initializing allocated move usable language compiler terminal builtin converted appears methods
definitions perhaps consider exceed handling policy fixed assignment fit way generation export
ranges iteration ref disable disk except mark exec instruction architecture slot started locale
compare pending unicode opcode exclusive passing special tls operations stdin dictionary static
targets high issue sure optional fix just var mapped stored drop comparison beginning func extract
frames overwrite copying listed step hexadecimal executed peer fallback pid side document refer
min able problem model exponent core sections denied queue lower ended complex classes assign
conflicting selector events hostname duplicated acquire behavior generic combined building means
payload repeat rule resolved give skipped their made split expand clear cancel digest self
mutually below const modules ready nesting whether auto forward attempting spec async embedded
rules param credentials compute upgrade force driver tables window fully iterator region row
mismatching locked dump compress contained sample reader refers integers positional avoid nodes
connected leading until returning modifier inline falling basic well counter place represent
simple handshake accepted variant normal major updated terminating enter encryption inputs cycle
repeated replace threads auth conflict entire stdout sets macro octal provider duration backend
dependencies origin linked op signed obtain compilation warranty assuming addresses flush partial
plain deep shell constraints sorted os saved newer finished declare scalar interval terminate
cleanup container missed later safe rows columns tokens warnings cached anonymous show reply
uninitialized early temp subclass underlying constructor parenthesis union annotation ends example
commands keep extend overridden disallowed conditional transfer replacement cpu params proper
above expressions considered colon direct converting redirect view src anyway eof unspecified
failures possibly transaction regexp unmarshal addr fstat vsnprintf seems windows readable fill
pop appropriate whitespace transform checks corresponding combine clean stopped cookie warn api
filesystem those otherwise decompression evaluate put subject wrap unhandled comma sizes printing
priority resolving checked layout changing remaining floating push caller non previously expansion
realloc diff truncate raise decompress conflicts owner ambiguous determined pipeline tests
executing abort invoked beyond features ascii testing graph engine certificates produce attached
legacy records backup resolution seen hold qualified disabling critical selection prime weak fsync
enlarge category manager zlib translation sum modification ordering shutdown join boundary
libraries low children automatically rejected starts collection tool download whole scale retry
validate aligned computed ids formats increase requests branch whose else cipher fast immediate
err candidate preceding unused wide extent zd users enlargement deleted dst streams specifies
escaped supply indices around uid labels instances terminator registry abstract immediately
including worker cases attr requirement rather importing tags wrote precision pad specifying
anything recommended arch late constants based copied unset uri edit blob scan defaults ending
occur identity making treated includes panic void indirect inserted hook entity encrypted devices
three choice inherit identifiers cmd mount sources schema transport syscall sizeof packages
marshal turn parts username live direction detect calculate arrays desired useful recorded secret
older dimensions pointers signatures catch lost represented failing maps something impossible
properties cert fragment hint general scanner routine dropping lld relation datetime rewind outer
timed buffers overlap quotes loader alternative ssl reporting derived aborted patterns automatic
installation continuation filenames parallel native unix clone maybe lists cast secure attach
violation replacing ensure satisfy prompt indicate flow across resolver lengths trust modes login
safely accessed downloaded history finish units head offsets primary instructions evaluation unary
bracket heap curve indicates elf wanted pack ok effective renaming protection endianness unpack
declarations our produced upper zone logical dot subset unterminated mechanism jump members
platforms env incoming entered completed interpreter owned xml earlier intended unsafe difference
usually minor hard dimension hidden decoder batch font connecting connections strict fingerprint
generating replaced equivalent allows codes partition align share updates chars reports
requirements slices others indexes come listen distance belong near debugging ip invoke
descriptors idle registers serial success tail mem continuing formatting iterable performing
nonzero canonical wrapper establish charset prepare renamed mixed stderr unreachable sense makes
tuples exceptions signals db doing acceptable fetching height updating treat functionality trusted
streaming corruption separate representation asked meta division inner necessary conditions period
comments term formatted commit appending io fall letter levels separated further product atomic
probe overflows ptr modulus arithmetic phase walk far rc edge clock ioctl parentheses deleting
trigger flex law zip tar differ removal refusing seeking choose wildcard recv snapshot delta shape
substitution immutable compiling distribution provides seem ms task raised kill mandatory
resources moved insecure lead consistent operands processor segments exported higher allocator
anchor indicator retrying placed dropped located layer exited visibility hardware outgoing exiting
restricted caused num partially answer signing extracting predicate sub literals unimplemented
cluster multi expr past swap receiving dwarf idx statements insertion unlink master abbreviation
deque unclosed blocking documentation integrity tries slots keywords tracing actions processes
seed logging listing meaning serialize delay stale forbidden spaces meant configure branches
capacity project hashes operators pip infer val timer finding interpret experimental anymore
linker square suppress resume locally queries helper exact latest refresh background glob refused
strategy divide grow taken translate extracted locations callbacks sorry proceed iterate odd
iterations unnamed clause reg nonce mod completely pc pos recovery allocating braces brace occurs
statistics area assumed writer exhausted linear remain protocols released infinite sequences
matrix home etc aliases bare manual fp defining defines macros letters optimize lazy accessing msg
normalized transition underscore performance encoder switching packed verifying runs reach prior
successful capture scanning prevent thus serialized us linking shift samples math indexing shown
sanity correspond accessible applying restart credential agent pages evaluating implicitly screen
increment reachable having post bundle searching reject held indexed looks spawn logic bin
representable among analysis cgo dereference inlined relocation printf factor salt amount dns
collation ctx resize tracking oid detach related assume trap foreign llu shadow yield rate
indentation tell sockets placeholder ratio infinity third gzip subclasses email sink alpha
manifest installing subprocess elem shut overrides locking outputs detection recognize applicable
however pseudo chunks arbitrary manually plugins multiply insufficient overlapping fractional
increasing retrieved volume hosts startup responses recent expired summary compatibility inserting
ca sparse clearing pin satisfied similar covered normally depend certain surrogate actually
recover gen ran leaf negotiate crypto decryption exchange processed reverse stats finalize causes
displayed vtable cost going mac fmt channels year day whence truncating getaddrinfo subdirectory
weights successfully states wildcards mutable capability bottom instantiate become subscript
optimization binaries leaving belongs schedule derive emit leak purpose brackets subtype proc
exceeding deferred unchanged shall better every collect best exclude tracked affect ordered
variadic differs reflect qualifier validated intrinsics depends vectors threshold ask revision
eval problems slow pick let images poll route symlinks lowercase site preserve doc issuer tab
passphrase primitive preferred constructed semantics notes uuid distinct coverage agree huge
decrypt def profiles ret aggregate retrieving potentially bigger deeply deflate crc typically
unwind sorting subsystem guard enabling restrictions bus shorter throw fraction span established
integral dup daemon blank along depending understood counts restrict anywhere parenthesized
standalone separators sig handlers stage initializer patch unescaped reload limits listener my
therefore authority marking imports sentinel typed optimized weight cross steps stride invalidate
silently merging mappings intermediate verb retries receiver bootstrap recognised performed
protected underscores overlaps taking downgrade grpc metric adjust divisor bucket pull chosen
opaque jobs refs serialization saving ext merged vertical fn words chmod role verified coordinates
resulting obsolete backing pinned reuse unlock locks rpc bogus compared crl signer triggers
preceded very enclosing callee calculated closure radix estimate modifiers chdir forcing redefined
bitmap cleanly procedure backtrace universal pathname initiate res mounted unmap interpreted gave
plus decoded echo utility coroutine nan annotated choices pem follows dest instantiated looking
dist took legal creates waitpid turned guess mime ve git urls abi lifetime models prediction
registration copies writes pairs though wrapped socks accepts examples alternatives happened
prefixed garbage proto repository upload endpoint authenticated solution defaulting job completion
pause rest authorization storing assert several cell alt render succeeded figure said visible
suffixes forget consumed nonexistent operate mentioned treating assigning redundant invariant decl
concurrent dead cursor profiling semicolon dependent sender freed curves validity hello mismatches
gid diagnostics unaligned identical omitted serializing adds vars sized gc traversal unwrap
reorder forgot percentage accesses sp evaluated tty iv li reduced software zx buf happens
remainder destructor mutex
"""
RANK: Final = {word: rank for rank, word in enumerate(_WORDS.split())}
