//! The arguments of `comity placement`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::common_arguments::{Json, StateFolderArguments};

/// See [`crate::arguments::Command::Placement`].
#[derive(Debug, Subcommand)]
pub(crate) enum PlacementCommand {
    /// Show the data servers of a running metadata server, and which of them answer
    ///
    /// Prints for each data server of each placement, or of that of EXPORT, its name, its address,
    /// whether it is up or down and since when, whether it is being drained, the free and the total
    /// space of the file system with its data files, and the last error if it is down. The server
    /// looks at each of them every ten seconds. Mirrored files of which the server has met a broken
    /// mirror since its start are counted; `comity placement check` finds all of them.
    Status(PlacementArguments),
    /// Add a data server to a placement
    ///
    /// The running metadata server dials ADDRESS and looks whether it may put files there, whether
    /// the folder is empty or has data files of this placement only, and whether the data server
    /// has the key of the placement. The data server is then added to the `[[placement]]` of EXPORT
    /// in the configuration, whose comments stay, and the server reloads it. If the server refuses
    /// it, the file is restored. EXPORT may be left out if only one export has data servers.
    ///
    /// New files use the data server from then on, and other changes of the file take effect, too.
    /// Old files stay on their data servers; `comity placement drain` moves those of one of them.
    ///
    /// Exits with 0 if the data server was added, or could be (--dry-run), with 1 if it was not,
    /// with 2 if the arguments are wrong.
    Add(AddArguments),
    /// Compare placed files with their data servers, and change nothing
    ///
    /// Walks the files of EXPORT, or of all exports with data servers, and names those that are
    /// lost (a data server has no data file, or a shorter one than the size of the file needs),
    /// differing (a data file extends beyond the end of its file, or the place of the file does not
    /// fit the configuration), degraded (a mirror is broken, and the others are used, or the
    /// placement asks for more mirrors than the file was given), and data files that are orphaned
    /// (no file refers to them). Data servers that are down are named, too.
    ///
    /// A part that was never written, as in a sparse file, cannot be told from a lost one: both are
    /// read as zeros. A file that a client is writing by a layout may extend beyond its end until
    /// the client has committed: repeat the check when nobody writes.
    ///
    /// With --bytes, the good mirrors of each file are read and compared with each other, too.
    /// Ranges in which they differ are named with the data servers, and are looked at again before
    /// that, up to five times while clients write to the file; then it is said to be in use.
    ///
    /// Exits with 0 if all is right, with 1 if there are findings or the check fails, with 2 if the
    /// arguments are wrong.
    Check(CheckArguments),
    /// Move the files on a data server to others, so that it can be taken away
    ///
    /// First set `draining = true` for the data server NAME in its `[[placement]]`, and reload the
    /// metadata server: new files are then placed on the other data servers. This command walks the
    /// files of EXPORT, or of all exports with such a data server, and moves the bytes of each file
    /// that has a part there to the data servers of new files. Clients go on meanwhile. While a
    /// file is being moved, it can be read, and clients that change it wait.
    ///
    /// Layouts of a file are recalled before it is moved. A file whose clients do not return them
    /// is tried again for five minutes. A run that was interrupted is continued by the next one. It
    /// can leave a copy of one file, of which `comity placement check` names the data files as
    /// orphaned.
    ///
    /// Exits with 0 if no file has data on NAME any more, with 1 if files are left or the command
    /// fails, with 2 if the arguments are wrong.
    Drain(DrainArguments),
    /// Label data files, so that the places of files can be rebuilt from them
    ///
    /// A label is an extended attribute of a data file on its data server: it says to which file
    /// the data file belongs, with the path, the owner and the mode of the file. The server writes
    /// labels of new files, of files that were renamed, and after a change of the owner or the
    /// mode, within about a second. This command walks the files of EXPORT, or of all exports with
    /// data servers, and writes the labels that are missing or old: those of files from before
    /// there were labels, of files below a directory that was renamed, and of files that programs
    /// on the server have changed. Run it as often as you make backups.
    ///
    /// Exits with 0 if all data files are labelled, with 1 if some are not or the command fails,
    /// with 2 if the arguments are wrong.
    Label(PlacementArguments),
    /// Rebuild the places of files from the labels of their data files
    ///
    /// Use this when the folder of EXPORT has lost the extended attributes that say where the bytes
    /// of its files are, when it was restored from a backup, or when it is lost. The command reads
    /// the labels of all data files on the data servers. A file that has lost its place gets it
    /// back. A file that is gone is created at the path in its label, with its owner, mode and
    /// size, and the time of its last write; missing directories are created for root.
    ///
    /// A file that already has a place stays as it is, and so does one of which the metadata server
    /// itself has bytes other than zeros. A file at the path of a label must have the owner that
    /// the label names. Data files of several files with one path are left, because the older ones
    /// may be of a file that was replaced. Labels are good only with the key of the placement by
    /// which they were written: restore the file of `key` first.
    ///
    /// Exits with 0 if each data file has its file, with 1 if some were left or the command fails,
    /// with 2 if the arguments are wrong.
    Rebuild(RebuildArguments),
    /// Make the mirrors again that mirrored files have lost
    ///
    /// Walks the files of EXPORT, or of all exports with flexible files layouts, and copies each
    /// file that lacks a mirror from a good one. Good mirrors stay where they are and are only
    /// read. A broken mirror is replaced on its own data server if that answers and is not
    /// draining, and otherwise made on another one; if none is left, the file stays as it is. The
    /// data file on a data server that does not answer stays there: when it is up again,
    /// `comity placement check` names it as orphaned.
    ///
    /// A file that was made with fewer mirrors than `mirrors` asks for now gets the others, too.
    /// One with more keeps those that are good. Clients go on meanwhile: a file that is being
    /// copied can be read, and clients that change it wait.
    ///
    /// Layouts of a file are recalled before it is copied. A file whose clients do not return them
    /// within ten seconds is left. A run that was interrupted is continued by the next one. It can
    /// leave a copy of one file, of which `comity placement check` names the data files as
    /// orphaned.
    ///
    /// Exits with 0 if no file lacks a mirror any more, with 1 if files are left or the command
    /// fails, with 2 if the arguments are wrong.
    Resilver(PlacementArguments),
}

/// The data server that is added.
#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// The name by which files will refer to the data server; it must not change
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Its host, with or without a port, as clients reach it
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: String,
    /// The path that a stock server of NFSv3 exports (flexible files)
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<String>,
    /// The configuration to change [default: that of the running server]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Try the data server out and show what would be added, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) placements: PlacementArguments,
}

/// The extent of a check.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Read all mirrors and compare their bytes, too
    #[arg(long)]
    pub(crate) bytes: bool,
    #[command(flatten)]
    pub(crate) placements: PlacementArguments,
}

/// The labels from which places are rebuilt.
#[derive(Debug, Args)]
pub(crate) struct RebuildArguments {
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take labels of FOLDER: the folder that EXPORT had before
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, requires = "export")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) placements: PlacementArguments,
}

/// The data server that is drained.
#[derive(Debug, Args)]
pub(crate) struct DrainArguments {
    /// The name of the data server in the configuration
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) placements: PlacementArguments,
}

/// The placements that a command is about.
#[derive(Debug, Args)]
pub(crate) struct PlacementArguments {
    /// The folder of an export with data servers [default: all]
    #[arg(value_name = "EXPORT", value_hint = ValueHint::DirPath)]
    pub(crate) export: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}
