use anyhow::Result;

use super::contenders::Contenders;
use super::{time, tree};
use crate::suite::{Access, Context, Driver};
use crate::workload::tree::Tree;

/// Bytes of a product of the build.
const PRODUCT_BYTES: usize = 8 << 10;

/// The file operations of a build: each source is read, products are written and read again.
pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let parameters = context.parameters();
    let (sources, products) = (parameters.count("sources")?, parameters.count("products")?);
    let tree = tree(context, sources, "");
    let mut contenders = Contenders::begin(context)?;
    let place = context.path("sources");
    let home = std::mem::replace(&mut context.directory, place);
    let built = contenders.on_tree(context, "build", &tree, |context, driver| {
        read_sources(context, driver, &tree)?;
        make_products(context, driver, products)?;
        time(context, driver);
        remove_products(context, driver, products)
    });
    context.directory = home;
    built
}

fn read_sources(context: &Context<'_>, driver: &mut Driver, tree: &Tree) -> Result<()> {
    for number in 0..tree.files {
        let file = driver.open(&context.path(&tree.path(number)), Access::Read)?;
        driver.read_data(&file, 0, tree.text(number).as_bytes())?;
        driver.close(file)?;
    }
    Ok(())
}

fn make_products(context: &Context<'_>, driver: &mut Driver, products: u64) -> Result<()> {
    for number in 0..products {
        let file = driver.create(&product(context, number))?;
        driver.write(&file, 0, PRODUCT_BYTES)?;
        driver.close(file)?;
    }
    for number in 0..products {
        let file = driver.open(&product(context, number), Access::Read)?;
        driver.read(&file, 0, PRODUCT_BYTES)?;
        driver.close(file)?;
    }
    Ok(())
}

fn remove_products(context: &Context<'_>, driver: &mut Driver, products: u64) -> Result<()> {
    (0..products).try_for_each(|number| driver.remove(&product(context, number)))
}

fn product(context: &Context<'_>, number: u64) -> String {
    context.path(&format!("p{number}.o"))
}
