//! The command line: one definition that yields parser, help, man pages and completions.
//!
//! [`crate::settings`] decides what the arguments mean for the user who runs the program.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use comity_export::Client;
use comity_grants::limits::{DECISIONS_DEFAULT, DECISIONS_MAX};
use comity_state::Limits;

use comity_daemon::{REPLY_CACHE_BYTES_MIN, Spoken, logging};

use crate::cluster_arguments::{ClusterArguments, ClusterCommand};
use crate::common_arguments::{Json, Source, StateFolderArguments};
use crate::data_server_arguments::DataServer;
use crate::explain_arguments::Explain;
use crate::far_arguments::FarServer;
use crate::page_arguments::PageArguments;
use crate::top_arguments::TopArguments;
use crate::{
    cache_arguments, key_arguments, load_arguments, migrate_arguments, placement_arguments,
};

/// Serve folders to NFS clients.
///
/// A file server in user space that speaks NFSv3 and NFSv4 over TCP. It needs no kernel module, no
/// portmapper and, for an ordinary user's own files, no privilege.
#[derive(Debug, Parser)]
#[command(
    name = "comity",
    bin_name = "comity",
    version,
    arg_required_else_help = false,
    max_term_width = 100
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve folders until told to stop
    ///
    /// `comity serve DIR` lets in clients on this machine only, reading and writing, with the
    /// client's root treated as nobody. Others come in by `--allow`, or by the lines of an
    /// exports(5) file. Run as root, the server acts as each caller; run as an ordinary user, it
    /// acts for all callers with that user's rights.
    ///
    /// SIGTERM and SIGINT stop the server after it has answered the running calls. SIGHUP, like
    /// `comity reload`, makes it read its configuration again; one with errors changes nothing.
    ///
    /// Exits with 0 after a signal, with 1 if it cannot serve, with 2 if the arguments are wrong.
    Serve(Box<Serve>),
    /// Check a configuration and report its errors
    ///
    /// Opens the files and folders that the configuration names, and reports all errors and
    /// warnings with file, line and column. Exits with 1 if `comity serve` would refuse it.
    Check(Check),
    /// Show the exports that a client would see
    ///
    /// Prints each export that a client at this address would see, as a line of exports(5) with
    /// every option. The answer is the server's own: from the configuration given, or else from the
    /// one that the running server has in force.
    Exports(Exports),
    /// Explain why a call is granted or refused
    ///
    /// Prints the decisions about one call, as the server itself makes them: the export and its
    /// entry, the mapping of the caller's ids, the files hidden from the caller, and the answer of
    /// the file system; each with the rule and its place in the configuration. Uses the
    /// configuration given, or else the one that the running server has in force. Changes nothing.
    ///
    /// Exits with 0 if the call would be granted, with 1 if not.
    Explain(Explain),
    /// Make a running server read its configuration again
    ///
    /// Additions, changes and removals take effect without dropping clients. If the new
    /// configuration has errors, they are printed, the old one stays in force, and the exit code is
    /// 1.
    Reload(Running),
    /// Show the exports, addresses and counters of a running server
    Status(Running),
    /// Show how loaded a running server is, live
    ///
    /// Shows each resource of the machine and of the server as the part in use, over a second, a
    /// minute and five minutes, and names the one that limits the server; the rate of each
    /// operation, client and export, recalls, and who waits for whom. `?` shows the keys.
    ///
    /// Times of operations, operations of NFSv3 and calls by export are known if the server runs
    /// with --metrics.
    Top(TopArguments),
    /// Show the clients of a running server and their opens, locks and delegations
    ///
    /// Prints one line for each NFSv4 client and for each NFSv3 host that holds locks: its age, the
    /// time since its last call, the number of its sessions, opens, locks, and delegations of files
    /// and of directories, and the clients it waits for. With CLIENT, prints each of them with its
    /// file and age, and the copies that the server makes for this client. A file is shown by its
    /// export and its fileid; `find EXPORT -xdev -inum FILEID` finds its name.
    ///
    /// A client is "new" until it has confirmed who it is, "expired" when it was silent for longer
    /// than its lease (it keeps what nobody else needs), "revoked" while it has not acknowledged
    /// that a delegation was taken from it, and "unheard" when it does not answer callbacks.
    Clients(Clients),
    /// Evict a client and free all it holds
    ///
    /// The server frees the client's opens and locks and revokes its delegations; the client
    /// reclaims nothing after a restart. Its next call fails, with EXPIRED in NFSv4.0 and
    /// BADSESSION in later versions, and it may then register again. An NFSv3 host is not notified.
    Evict(Evict),
    /// Change or show the log level of a running server
    ///
    /// A change lasts until the next one or until the server ends.
    Log(Log),
    /// Make, show and import keys
    ///
    /// A key identifies you to a server of another administration. The owner of a key may use files
    /// that were granted to it without an account.
    #[command(subcommand)]
    Key(key_arguments::Key),
    /// Bind keys to users of this machine
    ///
    /// A client that proves a bound key by TLS acts as its user. The user may grant, with the key,
    /// what the user may do.
    #[command(subcommand)]
    Account(key_arguments::Account),
    /// Print the id by which grants name a file or folder
    ///
    /// The id stays the same when the object is moved or renamed, and no other object ever gets it.
    Id(key_arguments::Id),
    /// Grant rights to a file or folder to a public key
    ///
    /// Prints a credential, signed with your key. Give it to the owner of the other key, who
    /// submits it to the server with `comity submit`, or with `setfattr -n user.comity.grant` on
    /// the root of a mount. A grant on a folder holds for what is below it. The other key may grant
    /// a part of its rights onward, unless the grant is final.
    Grant(key_arguments::Grant),
    /// Submit credentials to a server
    ///
    /// The credentials must lead from the key of a user of the server to your key, over others
    /// perhaps. The server keeps them until they end. Exits with 1 if none of them gives anything.
    Submit(key_arguments::server::Submit),
    /// List the credentials that you hold at a server, or have given
    Grants(key_arguments::server::Grants),
    /// Revoke a credential or a key
    ///
    /// The signer of a credential, and each signer above it in its chain, may revoke it. All rights
    /// that depend on it end at once. Of a public key, all rights end that it received through you.
    Revoke(key_arguments::server::Revoke),
    /// Print the credential for a file or folder that you have created by granted rights
    ///
    /// It gives all rights to the object and what is below it. Submit it, so that it outlives a
    /// restart of the server, or give it together with a grant of yours to the owner of another
    /// key. The server signs it now; it is valid as long as you may create in the folder of the
    /// object.
    Fetch(key_arguments::server::Fetch),
    /// Explain which rights a key has to a file, and by which credentials
    ///
    /// Prints each credential with the rights that it gives, and each line of it with its verdict.
    /// You may ask about your own key and about keys to which credentials lead from yours; the
    /// administrator (`--admin`) may ask about any key.
    Why(key_arguments::server::Why),
    /// Show who a server takes you for
    Whoami(key_arguments::server::Whoami),
    /// Mount a file system on a directory
    ///
    /// SOURCE is `nfs://HOST[:PORT]/PATH` or `HOST:/PATH` for a directory of an NFS server of
    /// version 3, 4.1 or 4.2, `dir:PATH` or a path for a directory of this machine, or `memory:`
    /// for an empty file system in memory that is gone when it is unmounted.
    ///
    /// Data read from a server stay in a disk cache, also over restarts. Written data are sent
    /// later, but before fsync(2) and close(2) return. A delegated file is used without asking the
    /// server at all. Options of the cache: dc_enable, nodc_enable; dc_root=FOLDER [default:
    /// /var/cache/comity as root, else ~/.cache/comity]; dc_max_size=SIZE and dc_min_free=SIZE, in
    /// KiB or with K, M, G or T; dc_read to use what is cached and add nothing (nodc_read: the
    /// default); dc_write=through, memory (the default) or journal, by which data that a program
    /// was promised survives a crash; dc_offline=ro to serve what is cached while the server cannot
    /// be reached; acregmin=, acregmax=, acdirmin= and acdirmax= in seconds; metrics=ADDRESS:PORT
    /// to serve numbers about the cache for Prometheus there.
    ///
    /// Options about a server: vers=3, 4 (the default), 4.1 or 4.2; port=N; hard (the default) or
    /// soft; timeo=TENTHS; retrans=N; rsize=BYTES; wsize=BYTES; nconnect=N, the number of
    /// connections over which the calls are spread.
    ///
    /// TLS: xprtsec=none (the default), tls, or mtls, which shows a key to the server; key=FILE,
    /// the private key, of `comity key new` or OpenSSH, or key=agent [default: the key of the
    /// other commands]; server_key=KEY, the key that the server has to have, as `comity key show`
    /// prints it, or a file with its certificate [default: the key that the server had before]. A
    /// mount over TLS never goes on without it. All users of such a mount act under the one key.
    ///
    /// Data that cannot be written, because another client has changed the file meanwhile, is kept
    /// in the folder `conflicts` of the cache, and the log says so.
    ///
    /// The command ends once DIR can be used, and leaves a program behind that serves it until
    /// `comity umount DIR`. As root all users of the machine may use the mount, each with
    /// their own rights; an ordinary user mounts by fusermount3, for that user alone. In /etc/fstab
    /// the type is `comity`.
    ///
    /// Exits with 0 once it is mounted, with 1 if it cannot be, with 2 if the arguments are wrong;
    /// as `mount.comity` with 32 and 1 as mount(8) has them.
    Mount(MountCommand),
    /// Unmount the file system that is mounted on a directory
    ///
    /// Waits until the program of the mount has sent all data that programs have written, and has
    /// ended. If some data could not be sent, it reports this and exits with 1; so it does if the
    /// server has taken nothing for 20 seconds, and the program of the mount goes on sending then.
    /// With --lazy it does not wait.
    ///
    /// A mount whose program has ended, so that its files answer "Transport endpoint is not
    /// connected", is unmounted, too.
    Umount(UmountCommand),
    /// Look after the disk caches of mounts
    #[command(subcommand)]
    Cache(cache_arguments::CacheCommand),
    /// Look after files on data servers (parallel NFS)
    #[command(subcommand)]
    Placement(placement_arguments::PlacementCommand),
    /// Move exports to another server, with the opens, locks and delegations of their clients
    ///
    /// Both servers see the same files, name each other in `[[peer]]`, have the same `handle.key`,
    /// and run with --no-local-locks. The server of the state folder hands the exports
    /// over: it keeps callers waiting, sends the state of the clients, and refers clients to the
    /// other server (NFS4ERR_MOVED, fs_locations). Clients of NFSv4 that follow keep their opens,
    /// locks and delegations and reclaim nothing. Clients of NFSv3 cannot be referred: they have to
    /// mount from the other server, or --proxy-for forwards their calls to it for a time.
    ///
    /// If something fails before the other server has taken the exports, they are served as before.
    /// If no answer arrives, calls to these exports wait until it has told whether it took them.
    ///
    /// The move goes on if this command is ended; `comity migrate --cancel` cancels it.
    ///
    /// Exits with 0 if the exports were moved, or the move was cancelled as asked, with 1 if not,
    /// with 2 if the arguments are wrong.
    Migrate(migrate_arguments::MigrateArguments),
    /// Show which head of a cluster serves which export
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Show what moves of exports would change, and measure what disks carry
    #[command(subcommand)]
    Load(load_arguments::LoadCommand),
    /// Measure file systems and NFS servers
    ///
    /// The workloads of five evaluations, from 1989 to 2006, on directories and on servers, with
    /// every sample kept and every byte checked.
    ///
    /// To begin with: `comity bench run all --quick DIR` measures the file system of an empty
    /// folder in ten minutes and leaves a report.html; with more targets, as `peer:comity
    /// peer:ganesha` or `nfs://server/export`, they take turns. `comity bench compare A B` compares
    /// two results.
    #[command(subcommand, arg_required_else_help = false)]
    Bench(comity_bench::command::Command),
    /// Print a completion script for a shell
    ///
    /// For bash: `comity completions bash > /usr/share/bash-completion/completions/comity`.
    Completions(Completions),
    /// Print a manual page, or write all of them into a folder
    ///
    /// To read one without installing it: `comity man comity-exports.5 | man -l -`.
    Man(Man),
}

/// See [`Command::Serve`].
#[derive(Debug, Args)]
#[command(group = one_of(&["dirs", "exports", "config", "from", "data_server"]))]
pub(crate) struct Serve {
    /// Folders to serve, each under its own path, or ceph:/PATH for a folder of a Ceph file system
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath,
          conflicts_with_all = ["exports", "config", "from"])]
    pub(crate) dirs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) far: FarServer,

    #[command(flatten)]
    pub(crate) data: DataServer,

    #[command(flatten)]
    pub(crate) source: Source,

    /// Also let in these clients: an address, a network such as 192.0.2.0/24, a host name, or *
    #[arg(long, value_name = "CLIENT", value_parser = client,
          conflicts_with_all = ["exports", "config"])]
    pub(crate) allow: Vec<String>,

    /// Refuse all changes, whatever the exports say
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Listen at this address; may be given more than once [default: loopback only for DIR without
    /// --allow, else all addresses]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Vec<IpAddr>,

    /// Listen at this port for both NFS and MOUNT; 0 takes any free one [default: 2049 as root,
    /// 20490 otherwise]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,

    #[command(flatten)]
    pub(crate) pages: PageArguments,

    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,

    /// Run a portmapper too, at port 111 of the same addresses
    #[arg(long, conflicts_with = "no_register")]
    pub(crate) portmap: bool,

    /// Do not register with the portmapper of this machine
    #[arg(long)]
    pub(crate) no_register: bool,

    /// Serve as root even if the server cannot act as each caller; all callers then have root's
    /// rights
    #[arg(long)]
    pub(crate) all_as_root: bool,

    /// Serve an empty file system in memory instead of each folder, for measurements and tests; its
    /// files are lost when the server ends
    #[arg(long)]
    pub(crate) in_memory: bool,

    /// Number of threads that serve at the same time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Versions of NFS to speak, of 3, 4, 4.0, 4.1, 4.2 [default: all]
    #[arg(long, value_name = "V,...", value_delimiter = ',', value_parser = version)]
    pub(crate) vers: Vec<String>,

    /// Lease of NFSv4 clients in seconds: a client that is silent for longer loses what others
    /// want, and clients have this time to reclaim after a restart
    #[arg(long, value_name = "SECONDS", default_value_t = 90,
        value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) lease_seconds: u32,

    /// Maximum number of delegations to NFSv4 clients, about 500 bytes each; 0 disables
    /// delegations. Clients are asked to return some before the maximum is reached
    #[arg(long, value_name = "N", default_value_t = Limits::DEFAULT.delegations)]
    pub(crate) delegations_max: usize,

    /// Bytes for the replies that clients of NFSv4.1 and later may ask for again. Before they are
    /// used up, clients are asked to use fewer slots. No client gets more than it leaves for all
    /// others, except for its first four slots
    #[arg(long, value_name = "BYTES", default_value_t = Limits::DEFAULT.reply_cache_bytes,
        value_parser = reply_cache_bytes)]
    pub(crate) reply_cache_bytes_max: usize,

    /// Do not coordinate with programs on this machine: clients and programs do not see each
    /// other's locks, and a program that opens or changes a delegated file causes no recall
    #[arg(long)]
    pub(crate) no_local_locks: bool,

    /// Prove the server to clients that ask for TLS with this certificate, in PEM; those between it
    /// and an authority may follow in the file [default: one that the server makes and keeps in its
    /// state folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of that certificate, in PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Refuse to begin TLS with clients that ask for it
    #[arg(long, conflicts_with_all = ["tls_cert", "tls_key"])]
    pub(crate) no_tls: bool,

    /// Seconds that running calls get when the server is stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub(crate) drain_seconds: u32,

    /// Only check the configuration, as `comity check` does, and exit
    #[arg(long)]
    pub(crate) check: bool,

    /// File of keys of users, one a line: user="NAME" and a public key as OpenSSH writes it; may be
    /// given more than once. The keys that `comity account` has bound count, too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) accounts: Vec<PathBuf>,

    /// Number of objects whose decisions are kept for each key that acts by grants, about 200 bytes
    /// each
    #[arg(long, value_name = "N", default_value_t = DECISIONS_DEFAULT, value_parser = decisions)]
    pub(crate) decisions_per_key: usize,

    #[command(flatten)]
    pub(crate) state: StateFolderArguments,

    /// Log level: off, error, warn, info, debug or trace, also for a part only, as in
    /// info,comity_server=debug [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) log: Option<String>,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`Command::Check`].
#[derive(Debug, Args)]
#[command(group = one_of(&["exports", "config"]))]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) source: Source,

    #[command(flatten)]
    pub(crate) state: StateFolderArguments,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`Command::Exports`].
#[derive(Debug, Args)]
pub(crate) struct Exports {
    #[command(flatten)]
    pub(crate) source: Source,

    /// The client's address
    #[arg(long, value_name = "ADDR")]
    pub(crate) client: IpAddr,

    #[command(flatten)]
    pub(crate) state: StateFolderArguments,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`Command::Reload`].
#[derive(Debug, Args)]
pub(crate) struct Running {
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`Command::Mount`].
#[derive(Debug, Clone, Args)]
pub(crate) struct MountCommand {
    /// The file system
    #[arg(value_name = "SOURCE")]
    pub(crate) source: PathBuf,

    /// The directory to mount it on
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,

    /// Options, separated by commas: those above, and ro, rw, allow_other, noallow_other,
    /// default_permissions,
    /// nodefault_permissions, nonempty, suid, nosuid, dev, nodev, exec, noexec, noac,
    /// actimeo=SECONDS, threads=N, log_file=FILE
    #[arg(short = 'o', long = "options", value_name = "OPTION,...", value_delimiter = ',')]
    pub(crate) options: Vec<String>,

    /// Serve the mount in the foreground, and log to standard error
    #[arg(short = 'f', long)]
    pub(crate) foreground: bool,

    /// Report on standard output that the mount can be used, then close it
    #[arg(long, hide = true, requires = "foreground")]
    pub(crate) report: bool,

    /// Log level, as for `comity serve`
    #[arg(long, value_name = "LEVEL", value_parser = level, default_value = "info")]
    pub(crate) log: String,

    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
}

/// See [`Command::Umount`].
#[derive(Debug, Args)]
pub(crate) struct UmountCommand {
    /// The directory that something is mounted on
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,

    /// Detach it now, and unmount it once no program uses it any longer
    #[arg(short = 'l', long)]
    pub(crate) lazy: bool,

    /// Unmount in this process, and do not wait for the program of the mount
    #[arg(long, hide = true)]
    pub(crate) here: bool,

    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
}

/// See [`Command::Clients`].
#[derive(Debug, Args)]
pub(crate) struct Clients {
    /// Number of a client, as the list shows it: show all that this client holds
    #[arg(value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// Show which clients wait for which, for locks and for the return of delegations
    #[arg(long)]
    pub(crate) waits: bool,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`Command::Evict`].
#[derive(Debug, Args)]
pub(crate) struct Evict {
    /// Number of the client, as `comity clients` shows it
    #[arg(value_name = "CLIENT")]
    pub(crate) client: String,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`Command::Log`].
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Log level: off, error, warn, info, debug or trace, also for a part only, as in
    /// info,comity_server=debug; without it, the present level is printed
    #[arg(value_name = "LEVEL", value_parser = level)]
    pub(crate) level: Option<String>,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
}

/// See [`Command::Completions`].
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Name of the shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// See [`Command::Man`].
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Name of the page, as in comity-serve.1
    #[arg(value_name = "PAGE", default_value = "comity.1")]
    pub(crate) page: String,

    /// Write all pages into this folder instead
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "page")]
    pub(crate) out: Option<PathBuf>,
}

/// At least one of these is needed.
fn one_of(arguments: &'static [&'static str]) -> ArgGroup {
    ArgGroup::new("what").args(arguments).multiple(true).required(true)
}

fn level(text: &str) -> anyhow::Result<String> {
    logging::level(text)?;
    Ok(text.to_owned())
}

fn version(text: &str) -> Result<String, String> {
    Spoken::these(&[text])?;
    Ok(text.to_owned())
}

fn reply_cache_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse::<usize>().map_err(|error| error.to_string())?;
    let least = || format!("at least {REPLY_CACHE_BYTES_MIN}: a session takes half of that");
    if bytes < REPLY_CACHE_BYTES_MIN { Err(least()) } else { Ok(bytes) }
}

fn decisions(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().map_err(|error| error.to_string())?;
    let range = 1..=DECISIONS_MAX;
    if range.contains(&number) { Ok(number) } else { Err(format!("from 1 to {DECISIONS_MAX}")) }
}

fn client(text: &str) -> Result<String, String> {
    Client::parse(text)?;
    Ok(text.to_owned())
}
