//! The server under test, in a test's network: `comity`, or nfs-ganesha to check the test itself.

use std::fs;
use std::path::{Display, Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use rustix::process::{Pid, Signal, kill_process};

use super::ceph;
use super::data_servers::{self, DataServers, HostCounts};
use super::ground::{output, output_of};
use super::keys::{Keys, Xprtsec};
use super::network::{Network, SERVER};
use super::other_server::{self, OtherServer};

/// Longest time that a server may take to listen, or to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(20);

/// Longest time in seconds of a script that administers a server.
const SCRIPT_SECONDS: &str = "120";

/// Arguments of `comity serve` that use the key `server` of a test.
pub(super) const KEY_ARGUMENTS: &[&str] =
    &["--tls-cert", "INPUT/tls/server.crt", "--tls-key", "INPUT/tls/server.key"];

/// The server to test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// The server of this repository.
    Comity,
    /// Debian's nfs-ganesha: a test that fails with both servers is itself wrong.
    Ganesha,
}

/// A running server.
pub(super) struct Server<'a> {
    network: &'a Network,
    peer: Peer,
    places: Places,
    child: Child,
    /// The data servers, which end with the server.
    data_servers: DataServers,
    /// The server to which the exports can be moved.
    other: Option<OtherServer>,
}

/// Paths of a server.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// The program `comity`.
    pub(super) program: PathBuf,
    /// The exported folder.
    pub(super) export: PathBuf,
    /// A folder for the server's configuration, state and log.
    pub(super) folder: PathBuf,
    /// The folder that guests see as /mnt/input.
    pub(super) input: PathBuf,
    /// The security that every export demands, with the key `server` of the test.
    pub(super) tls: Option<Xprtsec>,
    /// More arguments of `comity serve`; `INPUT` stands for the input folder.
    pub(super) arguments: &'static [&'static str],
    /// Numbers of hosts for data servers with the data of the exported folder.
    pub(super) data_servers: HostCounts,
    /// True if there is another server, to which the exports can be moved.
    pub(super) has_other_server: bool,
}

impl Places {
    /// Writes the exports file, in which `TOP` stands for the exported folder, `CEPH` for the
    /// configuration of the cluster and `{NAME}` for the public key of that name.
    fn configure(&self, exports: &str) -> Result<()> {
        let end = format!("{})", self.tls.map_or("", Xprtsec::option));
        let (export, ceph) = (&self.export, ceph::configuration(&self.folder));
        let places = [("TOP", export.display()), ("CEPH", ceph.display())];
        let put =
            |text: String, (word, path): (&str, Display<'_>)| text.replace(word, &path.to_string());
        let text = places.into_iter().fold(exports.to_owned(), put).replace(')', &end);
        let mut parts = text.split(['{', '}']);
        let mut text = parts.next().unwrap_or_default().to_owned();
        while let (Some(name), Some(rest)) = (parts.next(), parts.next()) {
            text += &format!("{}{rest}", Keys::below(&self.input)?.public_key(name)?);
        }
        Ok(fs::write(self.exports(), text)?)
    }

    fn exports(&self) -> PathBuf {
        self.folder.join("exports")
    }
}

impl<'a> Server<'a> {
    /// Starts a server and waits until it listens.
    ///
    /// # Errors
    /// If it ends or does not listen in time; its log is in the folder.
    pub(super) fn start(
        network: &'a Network,
        peer: Peer,
        places: Places,
        exports: &str,
    ) -> Result<Self> {
        fs::create_dir_all(places.folder.join("state"))?;
        places.configure(exports)?;
        let folders = (&*places.folder, &*places.export);
        let counts = places.data_servers;
        let data_servers = DataServers::start(network, &places.program, folders, counts)?;
        if places.has_other_server {
            other_server::prepare(&places.folder)?;
        }
        let child = spawn(network, peer, &places)?;
        let mut server = Self { network, peer, places, child, data_servers, other: None };
        server.wait_until_it_listens()?;
        if server.places.has_other_server {
            server.other = Some(OtherServer::start(network, &server.places)?);
        }
        Ok(server)
    }

    /// Kills the server as a crash would, and starts it again.
    ///
    /// # Errors
    /// If it does not listen again.
    pub(super) fn kill_and_restart(&mut self) -> Result<()> {
        self.ensure_alive()?;
        self.child.kill()?;
        self.child.wait()?;
        self.child = spawn(self.network, self.peer, &self.places)?;
        self.wait_until_it_listens()
    }

    /// Does the same with the other server.
    ///
    /// # Errors
    /// If there is none, or it does not answer again.
    pub(super) fn kill_and_restart_other(&mut self) -> Result<()> {
        let other = self.other.as_mut().context("there is no other server")?;
        other.kill_and_restart(self.network, &self.places)
    }

    /// Ends the server by SIGTERM, starts it again, and waits until it answers commands.
    ///
    /// # Errors
    /// If it does not end with success, or does not answer in time.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.end()?;
        self.child = spawn(self.network, self.peer, &self.places)?;
        let until = Instant::now() + PATIENCE;
        while let Err(why) = self.administer("$COMITY status --state-dir $STATE") {
            self.ensure_alive()?;
            ensure!(Instant::now() < until, "{why:#}; log: {}", self.log().display());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Changes the exports while the server runs: by a signal, or by `comity reload`.
    ///
    /// # Errors
    /// If the server does not load them.
    pub(super) fn reload(&mut self, exports: &str, by_signal: bool) -> Result<()> {
        self.places.configure(exports)?;
        self.load(by_signal)
    }

    /// Makes the server read its exports and its key again, by `comity reload`.
    ///
    /// # Errors
    /// If the server does not load them.
    pub(super) fn read_again(&mut self) -> Result<()> {
        self.load(false)
    }

    fn load(&mut self, by_signal: bool) -> Result<()> {
        let (program, state) = (&self.places.program, self.places.folder.join("state"));
        let before = self.reloads()?;
        if by_signal {
            kill_process(Pid::from_child(&self.child), Signal::HUP)?;
        } else {
            let state = state.display().to_string();
            output(&program.display().to_string(), &["reload", "--state-dir", &state])?;
        }
        let until = Instant::now() + PATIENCE;
        while self.reloads()? == before {
            self.ensure_alive()?;
            ensure!(Instant::now() < until, "exports not taken; log: {}", self.log().display());
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// The number of reloads in the server's log.
    fn reloads(&self) -> Result<usize> {
        Ok(fs::read_to_string(self.log())?.matches("configuration reloaded").count())
    }

    /// Runs a script with `sh` in the network of the server, which has the program in `$COMITY`,
    /// the state folder in `$STATE`, the exported folder in `$EXPORT`, the input folder of the
    /// guests in `$INPUT`, the configuration in `$CONFIG` and the key of its data servers in
    /// `$PLACEMENT_KEY`, and the folder that only the other server exports in `$OTHER`, if there is
    /// one.
    ///
    /// # Errors
    /// If the script fails.
    pub(super) fn administer(&self, script: &str) -> Result<String> {
        let variables = self.variables();
        output_of(self.network.command(&bounded(&variables, script)))
    }

    /// Runs a script on the host of a data server, with the same variables. It begins with the name
    /// of the host.
    ///
    /// # Errors
    /// If the script fails.
    pub(super) fn run_on_host(&self, words: &str) -> Result<String> {
        let (host, script) = words.split_once(' ').context("a host and a script are expected")?;
        output_of(self.data_servers.host(host)?.command(&bounded(&self.variables(), script)))
    }

    /// The variables of scripts that administer the server.
    fn variables(&self) -> Vec<String> {
        let Places { program, export, folder, input, .. } = &self.places;
        let variable = |name: &str, value: &Path| format!("{name}={}", value.display());
        let other = self.other.as_ref().map(|other| variable("OTHER", other.own_export()));
        let variables = [
            variable("COMITY", program),
            variable("STATE", &folder.join("state")),
            variable("EXPORT", export),
            variable("INPUT", input),
            variable("CONFIG", &data_servers::config(folder)),
            variable("PLACEMENT_KEY", &data_servers::key(folder)),
        ];
        variables.into_iter().chain(other).collect()
    }

    /// Checks that the server has not ended by itself.
    ///
    /// # Errors
    /// If it has; the error has its status and the path of its log.
    pub(super) fn ensure_alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the server ended, {status}; log: {}", self.log().display()),
        }
    }

    /// Ends the server by SIGTERM; checks that it ends with success.
    ///
    /// # Errors
    /// If it takes too long or does not exit 0.
    pub(super) fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.ensure_alive()?;
        if self.peer == Peer::Ganesha {
            return Ok(());
        }
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the server ended with {status} on SIGTERM");
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("the server did not end within {PATIENCE:?} of SIGTERM")
    }

    /// Mount options for a version of NFS.
    pub(super) fn options(&self, version: &str) -> String {
        let mountport = match self.peer {
            Peer::Comity => 2049,
            Peer::Ganesha => 20_048,
        };
        let own = match version {
            "3" => format!(",nolock,mountport={mountport},mountproto=tcp"),
            _ => String::new(),
        };
        let security = self.places.tls.map_or("", Xprtsec::option);
        format!("vers={version},proto=tcp,port=2049,hard{own}{security}")
    }

    fn log(&self) -> PathBuf {
        self.places.folder.join("server.log")
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while !self.network.listens(2049) {
            self.ensure_alive()?;
            ensure!(Instant::now() < until, "no server listens; log: {}", self.log().display());
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program that runs a script with variables for a bounded time.
fn bounded<'s>(variables: &'s [String], script: &'s str) -> Vec<&'s str> {
    let variables = variables.iter().map(String::as_str);
    let before = ["timeout", SCRIPT_SECONDS, "env"].into_iter().chain(variables);
    before.chain(["sh", "-c", script]).collect()
}

fn spawn(network: &Network, peer: Peer, places: &Places) -> Result<Child> {
    let log = places.folder.join("server.log");
    let log = fs::OpenOptions::new().create(true).append(true).open(log)?;
    let arguments = match peer {
        Peer::Comity => comity(places),
        Peer::Ganesha => ganesha(places)?,
    };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = network.command(&arguments);
    command.stdout(log.try_clone()?).stderr(log).spawn().context("start the server")
}

fn comity(places: &Places) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    let (source, file) = match (places.data_servers.is_none(), places.has_other_server) {
        (true, false) => ("--exports", places.exports()),
        (true, true) => ("--config", other_server::config(&places.folder, "a")),
        _ => ("--config", data_servers::config(&places.folder)),
    };
    let mut all = vec![
        text(&places.program),
        "serve".into(),
        source.into(),
        text(&file),
        "--listen".into(),
        SERVER.into(),
        "--port".into(),
        "2049".into(),
        "--state-dir".into(),
        text(&places.folder.join("state")),
    ];
    let input = text(&places.input);
    let keys = if places.tls.is_some() { KEY_ARGUMENTS } else { &[] };
    let arguments = places.arguments.iter().chain(keys);
    all.extend(arguments.map(|argument| argument.replace("INPUT", &input)));
    all
}

/// Ganesha needs an rpcbind of its own, which needs a /run of its own. All of them end with the
/// first process of their pid namespace.
fn ganesha(places: &Places) -> Result<Vec<String>> {
    let folder = places.folder.display();
    let configuration = format!(
        "NFS_CORE_PARAM {{ Protocols = 3, 4; Enable_NLM = false; NFS_Port = 2049; \
         MNT_Port = 20048; }}\nNFSv4 {{ Graceless = true; RecoveryBackend = fs; }}\n\
         EXPORT {{ Export_Id = 1; Path = {export}; Pseudo = {export}; Access_Type = RW; \
         Squash = No_Root_Squash; SecType = sys; Protocols = 3, 4; FSAL {{ Name = VFS; }} }}\n",
        export = places.export.display()
    );
    fs::write(places.folder.join("ganesha.conf"), configuration)?;
    let script = format!(
        "for d in /run /var/lib/nfs; do mount -t tmpfs tmpfs $d; done; mkdir -p /run/rpcbind \
         /run/sendsigs.omit.d /run/ganesha /var/lib/nfs/ganesha; rpcbind; \
         ganesha.nfsd -F -f {folder}/ganesha.conf -L /dev/stderr -p /run/ganesha/pid"
    );
    let before = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "sh", "-c"];
    Ok(before.into_iter().map(str::to_owned).chain([script]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ground::Ground;
    use crate::kernel::keys::NewKey;

    #[test]
    fn exports_name_the_folder_the_keys_and_the_security_of_the_test() {
        let ground = Ground::new(&crate::root(), "test-exports").unwrap();
        let (export, folder, input) = (ground.export(), ground.folder().into(), ground.input());
        let (program, tls, arguments) = (PathBuf::new(), Some(Xprtsec::Mtls), &[][..]);
        let (data_servers, has_other_server) = (HostCounts::default(), false);
        let places = Places {
            program,
            export,
            folder,
            input,
            tls,
            arguments,
            data_servers,
            has_other_server,
        };
        let keys = Keys::of(&ground).unwrap();
        keys.make(&NewKey::client("host-1")).unwrap();
        places.configure("TOP/a key={host-1}(rw) 192.0.2.1(ro)\n").unwrap();
        let (key, top) = (keys.public_key("host-1").unwrap(), ground.export());
        let wanted =
            format!("{}/a key={key}(rw,xprtsec=mtls) 192.0.2.1(ro,xprtsec=mtls)\n", top.display());
        assert_eq!(fs::read_to_string(places.exports()).unwrap(), wanted);
        ground.clear();
    }
}
