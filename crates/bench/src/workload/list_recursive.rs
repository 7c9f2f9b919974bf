use std::io;

use anyhow::{Context as _, Error, Result, ensure};

use crate::suite::{Context, Driver, Parameter, ParameterKind, Parameters, Unit, Workload};

/// `ls -lR` of directories whose files belong to more and more users, from the evaluation of
/// range-mapping and file-cloaking (2002).
pub(super) struct ListRecursive;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "files",
        about: "Files of each directory",
        kind: ParameterKind::Count,
        paper: "1000",
        quick: "1000",
        modern: "10000",
    },
    Parameter {
        name: "users",
        about: "Owners of the files; a directory for each number. More than 1 takes root",
        kind: ParameterKind::Counts,
        paper: "1,10,100,1000",
        quick: "1,1000",
        modern: "1,10,100,1000,10000",
    },
    Parameter {
        name: "first-user",
        about: "Number of the first owner",
        kind: ParameterKind::Count,
        paper: "10000",
        quick: "10000",
        modern: "10000",
    },
    Parameter {
        name: "listings",
        about: "Warm listings after the first",
        kind: ParameterKind::Count,
        paper: "4",
        quick: "4",
        modern: "4",
    },
    Parameter {
        name: "attributes",
        about: "Whether attributes are listed too, as ls -l does",
        kind: ParameterKind::Flag,
        paper: "true",
        quick: "true",
        modern: "true",
    },
];

impl Workload for ListRecursive {
    fn name(&self) -> &'static str {
        "lsr"
    }

    fn about(&self) -> &'static str {
        "recursive listing with attributes of directories of exactly 1,000 files owned by 1, 10, \
         100 and 1,000 users, cold and warm"
    }

    fn origin(&self) -> &'static str {
        "Spadavecchia and Zadok, USENIX 2002. A user's files stand together, as there. The first \
         listing is `cold` where caches could be emptied (--reset, --agent, --drop-caches), \
         `first` where they could not; by protocol every listing is the server's own and the \
         client keeps nothing. Every listing must have the right number of entries, with the right \
         owners."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        let all_users = parameters.counts("users")?;
        all_users
            .iter()
            .try_for_each(|users| Directory::of(parameters, String::new(), *users).map(drop))
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let all_users = context.parameters().counts("users")?;
        for (number, users) in all_users.iter().enumerate() {
            let path = context.path(&format!("users-{users}"));
            let directory = Directory::of(context.parameters(), path, *users)?;
            let filled = directory.fill(&mut context.driver()?);
            if number > 0 && filled.as_ref().is_err_and(is_refused) {
                let why = "giving files to other users takes root";
                context.note(format!("{users} users were left out: {why}"));
                continue;
            }
            filled?;
            let cold = context.reset_caches()?;
            let mut driver = context.driver()?;
            list(context, &mut driver, &directory, if cold { "cold" } else { "first" })?;
            for _ in 0..context.parameters().count("listings")? {
                list(context, &mut driver, &directory, "warm")?;
            }
            context.advance((number + 1) as f64 / all_users.len() as f64);
        }
        Ok(())
    }
}

/// Returns whether the target refused the operation.
fn is_refused(error: &Error) -> bool {
    let refused = |cause: &io::Error| cause.kind() == io::ErrorKind::PermissionDenied;
    error.chain().filter_map(|cause| cause.downcast_ref()).any(refused)
}

/// A directory that is listed.
struct Directory {
    path: String,
    files: u64,
    users: u64,
    first_user: u64,
    attributes: bool,
}

impl Directory {
    fn of(parameters: &Parameters, path: String, users: u64) -> Result<Self> {
        let files = parameters.count("files")?;
        ensure!(users > 0 && files > 0, "--users and --files: at least 1");
        let first_user = parameters.count("first-user")?;
        let fits = u32::try_from(first_user.saturating_add(users)).is_ok();
        ensure!(fits, "--first-user: ids have 32 bits");
        let attributes = parameters.flag("attributes")?;
        Ok(Self { path, files, users, first_user, attributes })
    }

    fn owner(&self, file: u64) -> u32 {
        (self.first_user + file * self.users / self.files) as u32
    }

    fn fill(&self, driver: &mut Driver) -> Result<()> {
        driver.make_directory(&self.path)?;
        for number in 0..self.files {
            let path = format!("{}/f{number:06}", self.path);
            let file = driver.create(&path)?;
            driver.close(file)?;
            if self.users > 1 {
                let owner = self.owner(number);
                let given = driver.set_owner(&path, owner, owner);
                given
                    .context("giving files to other users takes root: run as root, or --users 1")?;
            }
        }
        Ok(())
    }
}

fn list(
    context: &mut Context<'_>,
    driver: &mut Driver,
    directory: &Directory,
    cache: &str,
) -> Result<()> {
    driver.take_tally();
    let entries = driver.list(&directory.path, directory.attributes)?;
    let spent = driver.take_tally().spent.as_secs_f64();
    let (count, users) = (entries.len(), directory.users);
    ensure!(
        count as u64 == directory.files,
        "wrong data: a listing of {} has {count} entries, not {}",
        directory.path,
        directory.files
    );
    for entry in entries.iter().filter(|_| users > 1) {
        let number: u64 = entry.name.trim_start_matches('f').parse().unwrap_or(u64::MAX);
        let Some(metadata) = entry.metadata.filter(|_| number < directory.files) else { continue };
        let (found, wanted) = (metadata.user, directory.owner(number));
        ensure!(found == wanted, "wrong data: {} belongs to {found}, not {wanted}", entry.name);
    }
    let at = [("users", users.into()), ("cache", cache.into())];
    context.sample("list", &at, spent, Unit::Seconds);
    context.sample("entries", &at, count as f64 / spent, Unit::OperationsPerSecond);
    Ok(())
}
